"""Twins-PCPVT and -SVT of their authors, as MMPretrain and MMSegmentation have
them. Each has a PEG of CPVT in every stage."""
from typing import Mapping

from torch import Tensor

from .family import Family, Origin
from .rules import Rule


def origin(weights: Mapping[str, Tensor]) -> Origin:
    """Its PEGs are part of the models that mmpe's configs take."""
    return Origin(assumed=('the eps of the norms', ))


# MMPretrain's name first, then MMSegmentation's, whose sub-sampled attention
# is PyTorch's.
BLOCK = 'blocks.{i}.{j}'
STAGES = 'backbone.stages.{i}.{j}'
LAYERS = 'backbone.layers.{i}.{j}'
ATTENTION = {
    'q': ['attn.attn.in_proj_{rest}#0'],
    'kv': ['attn.attn.in_proj_{rest}#1'],
    'proj': ['attn.attn.out_proj.{rest}', 'attn.proj.{rest}'],
    'qkv': ['attn.qkv.{rest}'],
    'sr': ['attn.sr.{rest}'],
    'norm': ['attn.norm.{rest}'],
}

TWINS = Family(
    'twins',
    'Twins (Meituan-AutoML/Twins)',
    marks=['patch_embeds.0.proj.weight', 'pos_block.0.proj.0.weight',
           'blocks.0.0.norm1.weight'],
    rules=[
        Rule('patch_embeds.{i}.proj.{rest}',
             'backbone.patch_embeds.{i}.projection.{rest}'),
        Rule('patch_embeds.{i}.norm.{rest}',
             'backbone.patch_embeds.{i}.norm.{rest}'),
        Rule('pos_block.{i}.proj.0.{rest}',
             'backbone.position_encodings.{i}.proj.{rest}'),
        *[
            Rule(f'{BLOCK}.attn.{source}.{{rest}}',
                 f'{STAGES}.attn.{source}.{{rest}}',
                 *[f'{LAYERS}.{target}' for target in targets])
            for source, targets in ATTENTION.items()
        ],
        *[
            Rule(f'{BLOCK}.{source}.{{rest}}', f'{STAGES}.{target}.{{rest}}',
                 f'{LAYERS}.{target}.{{rest}}') for source, target in {
                     'norm1': 'norm1',
                     'norm2': 'norm2',
                     'mlp.fc1': 'ffn.layers.0.0',
                     'mlp.fc2': 'ffn.layers.1',
                 }.items()
        ],
        Rule('norm.{rest}', 'backbone.norm_after_stage3.{rest}',
             'backbone.norm_list.3.{rest}'),
        Rule('head.{rest}', 'head.fc.{rest}'),
    ],
    origin=origin,
    is_backbone=True)
