"""Checkpoints with the names that official code bases give."""
import json
from pathlib import Path
from typing import Dict, Tuple

import torch
from torch import Tensor, nn

GOLDEN = Path(__file__).parents[1] / 'golden'
KEYS = json.loads((GOLDEN / 'pe/keys.json').read_text())
IRPE = json.loads((GOLDEN / 'irpe/state_dict_keys.json').read_text())
DETR = 'detr_transformer_d256_h8_enc6_dec6'


def shapes(name: str) -> Dict[str, Tuple[int, ...]]:
    """An official model's names and shapes. Those of iRPE's DETR are in the
    file as additions to DETR's, those of its DeiT for the first block."""
    if name in KEYS:
        return KEYS[name]
    added = IRPE[DETR].get(f'{name} (added keys)')
    if added:
        return {**KEYS['detr/detr_r50'], **added}
    out = {}
    for key, shape in IRPE['deit'][name].items():
        blocks = range(12) if key.startswith('blocks.0.') else [0]
        for i in blocks:
            out[key.replace('blocks.0.', f'blocks.{i}.')] = shape
    return out


def weights(name: str) -> Dict[str, Tensor]:
    """Zeros with these names and shapes, each name's its own."""
    return {key: torch.zeros(shape) for key, shape in shapes(name).items()}


def detr_weights(model: nn.Module) -> Dict[str, Tensor]:
    """A small DETR's numbers under the names of facebookresearch/detr, the
    head with a row for each of COCO's 91 ids."""
    out = {}
    for key, value in model.state_dict().items():
        for own, theirs in (
            ('backbone.', 'backbone.0.body.'),
            ('neck.convs.0.conv.', 'input_proj.'),
            ('query_embedding.', 'query_embed.'),
            ('bbox_head.reg_ffn.layers.0.0.', 'bbox_embed.layers.0.'),
            ('bbox_head.reg_ffn.layers.1.', 'bbox_embed.layers.1.'),
            ('bbox_head.fc_reg.', 'bbox_embed.layers.2.'),
            ('bbox_head.fc_cls.', 'class_embed.'),
            ('decoder.post_norm.', 'transformer.decoder.norm.'),
            ('encoder.', 'transformer.encoder.'),
            ('decoder.', 'transformer.decoder.'),
        ):
            if key.startswith(own):
                key = theirs + key[len(own):]
                break
        for own, theirs in (('.self_attn.attn.', '.self_attn.'),
                            ('.cross_attn.attn.', '.multihead_attn.'),
                            ('.ffn.layers.0.0.', '.linear1.'),
                            ('.ffn.layers.1.', '.linear2.'),
                            ('.norms.0.', '.norm1.'), ('.norms.1.', '.norm2.'),
                            ('.norms.2.', '.norm3.')):
            key = key.replace(own, theirs)
        if key.startswith('class_embed'):
            rows = torch.randn(92, *value.shape[1:])
            ids = [i for i in range(1, 91) if i not in
                   (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
            rows[ids + [91]] = value
            value = rows
        if not key.startswith('positional_encoding') and not key.endswith(
                'num_batches_tracked'):
            out[key] = value
    return out
