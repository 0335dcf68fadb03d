"""Deformable DETR of its authors."""
from typing import Mapping

from torch import Tensor

from .detr import CATEGORIES, DILATION, LAYER
from .family import Family, Origin
from .rules import Drop, Rule


def used_categories(logits: Tensor) -> Tensor:
    """Rows of COCO's 80 categories from those of the ids 0 to 90.

    Rows of another number are of another data set and stay as they are.
    """
    return logits[CATEGORIES] if len(logits) == 91 else logits


def origin(weights: Mapping[str, Tensor]) -> Origin:
    """The sine that begins half a cell earlier. Learned tables, which the
    code offers too, crash there."""
    sine = dict(
        type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5)
    return Origin((sine, ), (DILATION, ))


# The decoder calls the norm of its cross-attention, which comes second, 1.
DECODER_NORMS = [
    Rule(f'transformer.decoder.layers.{{i}}.norm{source}.{{rest}}',
         f'decoder.layers.{{i}}.norms.{target}.{{rest}}')
    for source, target in {1: 1, 2: 0, 3: 2}.items()
]
ATTENTION = [
    Rule('transformer.encoder.layers.{i}.self_attn.{rest}',
         'encoder.layers.{i}.self_attn.{rest}'),
    Rule('transformer.decoder.layers.{i}.cross_attn.{rest}',
         'decoder.layers.{i}.cross_attn.{rest}'),
]
# The level that is made of the last map is a convolution of its own.
NECK = [
    Rule('input_proj.{i}.0.bias', 'neck.convs.{i}.conv.bias',
         'neck.extra_convs.0.conv.bias',
         hint='MMDetection leaves it out before a norm; '
         'neck=dict(bias=True) keeps it'),
    Rule('input_proj.{i}.0.weight', 'neck.convs.{i}.conv.weight',
         'neck.extra_convs.0.conv.weight'),
    Rule('input_proj.{i}.1.{rest}', 'neck.convs.{i}.gn.{rest}',
         'neck.extra_convs.0.gn.{rest}'),
]
HEAD = [
    Rule('class_embed.{i}.{rest}', 'bbox_head.cls_branches.{i}.{rest}',
         convert=used_categories),
    *[
        Rule(f'bbox_embed.{{i}}.layers.{layer}.{{rest}}',
             f'bbox_head.reg_branches.{{i}}.{2 * layer}.{{rest}}')
        for layer in range(3)
    ],
    *[
        Rule(f'transformer.decoder.{branch}_embed.{{rest}}',
             Drop('a second name of the same branch',
                  f'{branch}_embed.{{rest}}')) for branch in ('class', 'bbox')
    ],
]
TWO_STAGE = [
    Rule('transformer.enc_output.{rest}', 'memory_trans_fc.{rest}'),
    Rule('transformer.enc_output_norm.{rest}', 'memory_trans_norm.{rest}'),
    Rule('transformer.pos_trans.{rest}', 'pos_trans_fc.{rest}'),
    Rule('transformer.pos_trans_norm.{rest}', 'pos_trans_norm.{rest}'),
]

DEFORMABLE_DETR = Family(
    'deformable-detr',
    'Deformable DETR (fundamentalvision/Deformable-DETR)',
    marks=[
        'transformer.level_embed',
        'transformer.encoder.layers.0.self_attn.sampling_offsets.weight',
        'class_embed.0.weight', 'input_proj.0.0.weight'
    ],
    rules=[
        Rule('backbone.0.body.{rest}', 'backbone.{rest}'),
        *NECK,
        Rule('transformer.level_embed', 'level_embed'),
        *ATTENTION,
        *DECODER_NORMS,
        *LAYER,
        Rule('transformer.reference_points.{rest}',
             'reference_points_fc.{rest}'),
        Rule('query_embed.weight', 'query_embedding.weight'),
        *TWO_STAGE,
        *HEAD,
    ],
    origin=origin)
