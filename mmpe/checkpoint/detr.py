"""DETR of its authors, and iRPE's fork of it."""
from typing import Mapping

from torch import Tensor

from .family import Family, Origin
from .irpe import LOOKUP, irpe_item
from .rules import Rule

# Of the 90 category ids of COCO these are used by no object.
UNUSED = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
CATEGORIES = [i for i in range(1, 91) if i not in UNUSED]


def used_categories(logits: Tensor) -> Tensor:
    """Rows of COCO's 80 categories and no object from those of the 91 ids.

    Rows of another number are of another data set and stay as they are.
    """
    if len(logits) != 92:
        return logits
    return logits[[*CATEGORIES, 91]]


SINE = dict(type='mmpe.SinePositionalEncoding', normalize=True)
DILATION = 'the source is dilated as CONFIG is'
LEARNED = dict(type='mmpe.LearnedPositionalEncoding')


def detr_origin(weights: Mapping[str, Tensor]) -> Origin:
    """The sine, unless there are tables; and iRPE, where there are its."""
    learned = 'backbone.1.row_embed.weight' in weights
    items = [LEARNED if learned else SINE]
    rpe = irpe_item(weights, 'transformer.encoder.layers.0.self_attn')
    assumed = [DILATION]
    if rpe:
        items.append(rpe)
        assumed.append("iRPE's map and ratio")
    return Origin(tuple(items), tuple(assumed), partial=bool(rpe))


BOX = {0: 'bbox_head.reg_ffn.layers.0.0', 1: 'bbox_head.reg_ffn.layers.1',
       2: 'bbox_head.fc_reg'}

# In the encoder and in the decoder alike.
LAYER = [
    Rule(f'transformer.{coder}.layers.{{i}}.{source}',
         f'{coder}.layers.{{i}}.{target}')
    for coder in ('encoder', 'decoder') for source, target in {
        'self_attn.{rest}': 'self_attn.attn.{rest}',
        'multihead_attn.{rest}': 'cross_attn.attn.{rest}',
        'linear1.{rest}': 'ffn.layers.0.0.{rest}',
        'linear2.{rest}': 'ffn.layers.1.{rest}',
        'norm1.{rest}': 'norms.0.{rest}',
        'norm2.{rest}': 'norms.1.{rest}',
        'norm3.{rest}': 'norms.2.{rest}',
    }.items()
]

RULES = [
    Rule('backbone.0.body.{rest}', 'backbone.{rest}'),
    Rule('backbone.1.{axis}_embed.weight',
         'positional_encoding.learned.{axis}_embed.weight'),
    Rule('input_proj.{rest}', 'neck.convs.0.conv.{rest}'),
    *[
        Rule(f'transformer.encoder.layers.{{i}}.self_attn.{source}',
             f'positional_encoding.irpe.tables.{{i}}.{target}')
        for source, target in LOOKUP.items()
    ],
    *LAYER,
    Rule('transformer.decoder.norm.{rest}', 'decoder.post_norm.{rest}'),
    Rule('query_embed.weight', 'query_embedding.weight'),
    Rule('class_embed.{rest}', 'bbox_head.fc_cls.{rest}',
         convert=used_categories),
    *[
        Rule(f'bbox_embed.layers.{i}.{{rest}}', f'{target}.{{rest}}')
        for i, target in BOX.items()
    ],
]

MARKS = ('transformer.encoder.layers.0.self_attn.in_proj_weight',
         'transformer.decoder.norm.weight', 'class_embed.weight',
         'query_embed.weight')
TABLES = 'transformer.encoder.layers.{i}.self_attn.rpe_{rest}'

DETR = Family('detr', 'DETR (facebookresearch/detr)', MARKS, RULES,
              detr_origin, without=[TABLES])
IRPE_DETR = Family('irpe-detr', "iRPE's DETR (microsoft/Cream)",
                   [*MARKS, TABLES], RULES, detr_origin)
