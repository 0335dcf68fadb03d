"""Vision transformers with timm's names: DeiT, iRPE's and LaPE's forks of it,
CPVT, timm itself; and those of MMPretrain and MMSegmentation."""
import math
from typing import Mapping

from torch import Tensor

from .family import Family, Origin
from .irpe import LOOKUP, irpe_item
from .rules import Drop, Rule

TABLE = 'backbone.positional_encoding.embedding.weight'


def without_batch(table: Tensor) -> Tensor:
    """``(1, N, C)`` or ``(N, C)`` to ``(N, C)``."""
    if table.dim() == 3 and len(table) == 1:
        return table[0]
    if table.dim() != 2:
        raise ValueError('a table of positions has the shape (1, N, C), not '
                         f'{tuple(table.shape)}')
    return table


def offset_table(table: Tensor) -> Tensor:
    """``((2h - 1)**2, heads)`` to ``(heads, 2h - 1, 2h - 1)``."""
    side = math.isqrt(len(table))
    if side**2 != len(table) or side % 2 == 0:
        raise ValueError(f'{len(table)} rows are no offsets of a square grid')
    return table.T.unflatten(1, (side, side))


def indices(table: Tensor) -> Tensor:
    """Which row of a table of offsets each pair of cells has."""
    if table.dim() != 2 or table.shape[0] != table.shape[1]:
        raise ValueError('indices of pairs are square, not '
                         f'{tuple(table.shape)}')
    return table


def embedding(weights: Mapping[str, Tensor]) -> Origin:
    return Origin((dict(type='mmpe.PositionEmbedding'), ))


def irpe_origin(weights: Mapping[str, Tensor]) -> Origin:
    return Origin((dict(type='mmpe.PositionEmbedding'),
                   irpe_item(weights, 'blocks.0.attn')),
                  ("iRPE's map and ratio", ), partial=True)


def lape_origin(weights: Mapping[str, Tensor]) -> Origin:
    if 'blocks.0.attn.relative_position_bias_table' in weights:
        normed = 'blocks.0.attn.pe_norm.weight' in weights
        return Origin((dict(
            type='mmpe.RelativePositionBias', layer_norm=normed), ))
    if 'pos_embed0' in weights:
        return Origin(unknown='the source has a table for each layer')
    return Origin(unknown='the file shows neither the form of LaPE, '
                  'progressive or independent, nor whether its table is '
                  'learned')


def cpvt_origin(weights: Mapping[str, Tensor]) -> Origin:
    return Origin(unknown='the file does not show after which blocks its PEGs '
                  'are')


STEM = [
    Rule('cls_token', 'backbone.cls_token'),
    Rule('dist_token', 'backbone.dist_token'),
    Rule('patch_embed.proj.{rest}', 'backbone.patch_embed.projection.{rest}'),
    Rule('pos_embed', TABLE, convert=without_batch),
]
BLOCKS = [
    Rule(f'blocks.{{i}}.{source}.{{rest}}',
         f'backbone.layers.{{i}}.{target}{{rest}}')
    for source, target in {
        'norm1': 'ln1.',
        'norm2': 'ln2.',
        'attn.qkv': 'attn.attn.in_proj_',
        'attn.proj': 'attn.attn.out_proj.',
        'mlp.fc1': 'ffn.layers.0.0.',
        'mlp.fc2': 'ffn.layers.1.',
    }.items()
]
HEAD = [
    Rule('norm.{rest}', 'backbone.ln1.{rest}'),
    Rule('head.{rest}', 'head.layers.head.{rest}'),
    Rule('head_dist.{rest}', 'head.layers.head_dist.{rest}'),
]
RULES = [*STEM, *BLOCKS, *HEAD]

IRPE = [
    Rule(f'blocks.{{i}}.attn.{source}',
         f'backbone.positional_encoding.irpe.tables.{{i}}.{target}')
    for source, target in LOOKUP.items()
]
BIAS = 'backbone.positional_encoding.bias'
LAPE = [
    Rule('blocks.{i}.pe_norm.{rest}',
         'backbone.positional_encoding.lape.norms.{i}.{rest}'),
    Rule('blocks.{i}.attn.pe_norm.{rest}', f'{BIAS}.norms.{{i}}.{{rest}}'),
    Rule('blocks.{i}.attn.relative_position_bias_table',
         f'{BIAS}.tables.{{i}}', convert=offset_table),
    Rule('blocks.{i}.attn.relative_position_index',
         Drop('computed from the grid'), convert=indices),
    # A table for each layer; the first module has no number.
    Rule('pos_embed0', TABLE, convert=without_batch),
    *[
        Rule(f'pos_embed{i}',
             TABLE.replace('embedding', f'embedding{i + 1}'),
             convert=without_batch) for i in range(1, 64)
    ],
]
PEG = [
    Rule('pos_block.{i}.proj.0.{rest}',
         'backbone.positional_encoding.peg.blocks.{i}.0.conv.{rest}')
]

BLOCK = 'blocks.0.attn.qkv.weight'
PATCHES = 'patch_embed.proj.weight'
RPE = 'blocks.0.attn.rpe_{rest}'
PEG_MARK = 'pos_block.0.proj.0.weight'
LAPE_MARKS = ('blocks.0.pe_norm.weight',
              'blocks.0.attn.relative_position_bias_table', 'pos_embed0')

FAMILIES = [
    Family('irpe-deit', "iRPE's DeiT (microsoft/Cream)",
           [PATCHES, BLOCK, RPE], [*IRPE, *RULES], irpe_origin,
           is_backbone=True),
    *[
        Family('lape', "LaPE's vision transformer (Ingrid725/LaPE)",
               [PATCHES, BLOCK, mark], [*LAPE, *RULES], lape_origin,
               is_backbone=True) for mark in LAPE_MARKS
    ],
    Family('cpvt', 'CPVT with the names of DeiT and Twins',
           [PATCHES, BLOCK, PEG_MARK], [*PEG, *RULES], cpvt_origin,
           is_backbone=True),
    Family('deit', 'DeiT (facebookresearch/deit)',
           [PATCHES, BLOCK, 'cls_token', 'pos_embed'], RULES, embedding,
           without=['blocks.0.ls1.{rest}', 'fc_norm.{rest}',
                    'norm_pre.{rest}', 'reg_token'],
           is_backbone=True),
    Family('timm', "timm's vision transformer",
           [PATCHES, BLOCK], RULES, embedding, is_backbone=True),
    Family('mmpretrain', "MMPretrain's vision transformer",
           ['patch_embed.projection.weight', 'layers.0.attn.qkv.weight',
            'pos_embed'],
           [
               Rule('pos_embed', TABLE, convert=without_batch),
               Rule('layers.{i}.attn.qkv.{rest}',
                    'backbone.layers.{i}.attn.attn.in_proj_{rest}'),
               Rule('layers.{i}.attn.proj.{rest}',
                    'backbone.layers.{i}.attn.attn.out_proj.{rest}'),
               Rule('head.{rest}', 'head.{rest}'),
               Rule('{rest}', 'backbone.{rest}'),
           ], embedding, is_backbone=True),
    Family('mmseg', "MMSegmentation's vision transformer",
           ['patch_embed.projection.weight', 'layers.0.attn.attn.{rest}',
            'layers.0.ln1.weight', 'pos_embed'],
           [
               Rule('pos_embed', TABLE, convert=without_batch),
               Rule('{word}_head.{rest}', '{word}_head.{rest}'),
               Rule('{rest}', 'backbone.{rest}'),
           ], embedding, is_backbone=True),
]
