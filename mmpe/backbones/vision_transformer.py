"""A vision transformer with a list of position encodings."""
from typing import Dict, Optional, Sequence, Tuple, Union

import torch
from mmcv.cnn import build_norm_layer
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import BaseModule, ModuleList
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmpe.layers import PositionStream, ViTLayer
from mmpe.layers.batch_shapes import padding_mask
from mmpe.layers.windows import check_window
from mmpe.position import (AbsoluteEncoding, PositionEncodingList, TokenGrid,
                           as_items)
from mmpe.registry import MODELS
from .archs import read_arch

JOINS = ('input', 'query_key', 'shared', 'unshared')
OUT_TYPES = ('featmap', 'cls_token', 'avg_featmap')


@MODELS.register_module()
class VisionTransformer(BaseModule):
    """ViT in the shape of DeiT, with a list of position encodings.

    CPVT is this with a PEG in the list.

    Papers: `DeiT <https://arxiv.org/abs/2012.12877>`_, `CPVT
    <https://arxiv.org/abs/2102.10882>`_; windows: `ViTDet
    <https://arxiv.org/abs/2203.16527>`_, sec. 3.

    Args:
        arch (str | dict): ``'deit-tiny'``, ``'deit-small'``, ``'deit-base'``
            or ``embed_dims``, ``num_layers``, ``num_heads`` and
            ``feedforward_channels``. Defaults to ``'deit-small'``.
        img_size (int | tuple[int, int]): Height and width that tables of
            encodings are made for; images may have any. Defaults to 224.
        patch_size (int): Defaults to 16.
        in_channels (int): Defaults to 3.
        positional_encoding (list[dict]): The encodings. Defaults to DeiT's
            learned embedding.
        join (str, optional): Where the embedding goes: ``'input'``, to the
            tokens before the first layer; ``'query_key'``, to queries and
            keys of each layer; ``'shared'``, to the tokens before each layer;
            ``'unshared'``, the same with an embedding for each layer. With
            :class:`LaPE` in the list, as that says. Defaults to ``'input'``.
        with_cls_token (bool): Defaults to True.
        with_dist_token (bool): Whether a distillation token follows the class
            token. Defaults to False.
        window_size (int, optional): Height and width of the windows, in
            cells, that attend to themselves in all layers but
            ``global_layers``. Defaults to None: all tokens to all.
        global_layers (Sequence[int]): Defaults to ().
        out_indices (Sequence[int]): Layers whose output is returned, from the
            end if negative. Defaults to ``(-1, )``.
        out_type (str): ``'featmap'``, ``(B, C, h, w)``; ``'cls_token'``,
            ``(B, C)`` or, with a distillation token, both as a tuple;
            ``'avg_featmap'``, the mean of the valid cells, ``(B, C)``.
            Defaults to ``'featmap'``.
        final_norm (bool): Whether the last layer's output is normalised.
            Defaults to True.
        drop_path_rate (float): Of the last layer; it grows from 0 on.
            Defaults to 0.
        with_cp (bool): Whether layers are recomputed in the backward instead
            of keeping their activations. Defaults to False.
        norm_cfg (dict): Defaults to ``dict(type='LN', eps=1e-6)``.

    Raises:
        TypeError: If ``arch`` lacks a key.
        ValueError: If an argument has a value other than those above.
    """

    reads_batch_shapes = True
    """Whether it asks a data preprocessor of mmpe what is padding."""

    def __init__(self,
                 arch: Union[str, dict] = 'deit-small',
                 img_size: Union[int, Tuple[int, int]] = 224,
                 patch_size: int = 16,
                 in_channels: int = 3,
                 positional_encoding: Sequence[dict] = (dict(
                     type='mmpe.PositionEmbedding'), ),
                 join: Optional[str] = None,
                 with_cls_token: bool = True,
                 with_dist_token: bool = False,
                 window_size: Optional[int] = None,
                 global_layers: Sequence[int] = (),
                 out_indices: Sequence[int] = (-1, ),
                 out_type: str = 'featmap',
                 final_norm: bool = True,
                 drop_path_rate: float = 0.,
                 with_cp: bool = False,
                 norm_cfg: dict = dict(type='LN', eps=1e-6),
                 init_cfg: Optional[dict] = None) -> None:
        super().__init__(init_cfg)
        arch = read_arch(arch)
        self.embed_dims = dims = arch['embed_dims']
        self.num_layers = arch['num_layers']
        self.num_prefix = int(with_cls_token) + int(with_dist_token)
        self.out_indices = self._check_layers('out_indices', out_indices)
        self.out_type = out_type
        self.with_cp = with_cp
        self.patch_size = patch_size
        if out_type not in OUT_TYPES or (out_type == 'cls_token'
                                         and not with_cls_token):
            raise ValueError(f'out_type must be one of {", ".join(OUT_TYPES)},'
                             ' the second with a class token, got '
                             f'{out_type!r}')
        if with_dist_token and not with_cls_token:
            raise ValueError('with_dist_token needs with_cls_token=True')
        check_window(window_size, self.num_prefix)
        if not 0 <= drop_path_rate < 1:
            raise ValueError('drop_path_rate must be from 0 to below 1, got '
                             f'{drop_path_rate!r}')
        for name, value in dict(img_size=img_size, patch_size=patch_size,
                                in_channels=in_channels).items():
            pair = name == 'img_size' and isinstance(value, (list, tuple))
            sides = value if pair else [value]
            if len(sides) != 1 + pair or not all(
                    isinstance(n, int) and n > 0 for n in sides):
                raise ValueError(f'{name} must be positive, got {value!r}')

        self.patch_embed = PatchEmbed(
            in_channels,
            dims,
            kernel_size=patch_size,
            stride=patch_size,
            input_size=img_size)
        self.cls_token = self.dist_token = None
        if with_cls_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dims))
        if with_dist_token:
            self.dist_token = nn.Parameter(torch.zeros(1, 1, dims))
        layer_join = self._build_encoding(positional_encoding, join, arch,
                                          norm_cfg.get('eps', 1e-5))
        everywhere = self._check_layers('global_layers', global_layers)
        rates = torch.linspace(0, drop_path_rate, self.num_layers).tolist()
        self.layers = ModuleList(
            ViTLayer(
                dims,
                arch['num_heads'],
                arch['feedforward_channels'],
                join=layer_join,
                drop_path=rate,
                window_size=None if i in everywhere else window_size,
                norm_cfg=norm_cfg) for i, rate in enumerate(rates))
        self.ln1 = build_norm_layer(norm_cfg, dims)[1] if final_norm else None

    def _check_layers(self, name: str,
                      layers: Sequence[int]) -> Tuple[int, ...]:
        n = self.num_layers
        layers = [layers] if isinstance(layers, int) else list(layers or ())
        if not all(isinstance(i, int) and -n <= i < n for i in layers):
            raise ValueError(f'{name} must be of {-n} to {n - 1}, got '
                             f'{layers}')
        return tuple(i % n for i in layers)

    def _build_encoding(self, items: Sequence[dict], join: Optional[str],
                        arch: Dict[str, int], norm_eps: float) -> str:
        """Build the list; returns what layers do with its embedding."""
        if join not in (*JOINS, None):
            raise ValueError(
                f'join must be one of {", ".join(JOINS)}, got {join!r}')
        items = as_items(items)
        host = dict(
            embed_dims=arch['embed_dims'],
            num_heads=arch['num_heads'],
            num_layers=arch['num_layers'],
            num_prefix=self.num_prefix)
        defaults = dict(
            grid=tuple(self.patch_embed.init_out_size), norm_eps=norm_eps)
        encoding = PositionEncodingList(items, defaults, **host)
        if join == 'unshared':
            own = []
            for item, e in zip(items, encoding.encodings):
                if isinstance(e, AbsoluteEncoding) and not e.layers:
                    own += [
                        dict(item, layers=[i]) for i in range(self.num_layers)
                    ]
                else:
                    own.append(item)
            encoding = PositionEncodingList(own, defaults, **host)
        with_decoder = [e for e in encoding.encodings if e.decoder]
        if with_decoder:
            raise ValueError(f'{type(with_decoder[0]).__name__}: decoder=True '
                             'is for DETR: a backbone has no decoder')
        asked = [e.join for e in encoding.encodings if e.join]
        if asked and join is not None:
            raise ValueError(
                f'join={join!r}: an encoding of the list says by itself where '
                'the embedding goes; leave join out')
        has_layers = any(e.layers for e in encoding.encodings)
        encoding.check_embedding()
        join = asked[0] if asked else join or 'input'
        if has_layers and join == 'input':
            raise ValueError('layers of an embedding need join=query_key or '
                             'shared: at the input there are no layers')
        self.positional_encoding = encoding
        return 'shared' if join == 'unshared' else join

    def init_weights(self) -> None:
        """DeiT's: truncated normal, but for PyTorch's own for the patches."""
        for name, module in self.named_modules():
            if name.startswith('positional_encoding'):
                continue
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.MultiheadAttention):
                nn.init.trunc_normal_(module.in_proj_weight, std=0.02)
                nn.init.zeros_(module.in_proj_bias)
        for token in self.cls_token, self.dist_token:
            if token is not None:
                nn.init.trunc_normal_(token, std=0.02)
        self.patch_embed.projection.reset_parameters()
        super().init_weights()

    def forward(self,
                x: Tensor,
                mask: Optional[Tensor] = None) -> Tuple[Tensor, ...]:
        """Encode images.

        Args:
            x (Tensor): ``(B, C, H, W)``.
            mask (Tensor, optional): bool, ``(B, H, W)``, True is padding; the
                valid pixels are a rectangle from the top-left one on.
                Defaults to what mmpe's data preprocessors know of the batch,
                else to all valid.

        Returns:
            tuple[Tensor]: For each of ``out_indices``, as ``out_type`` says.

        Raises:
            ValueError: If ``mask`` has another shape or type.
        """
        if mask is None:
            mask = padding_mask(x)
        if mask is not None:
            if mask.shape != x[:, 0].shape or mask.dtype != torch.bool:
                raise ValueError(
                    f'mask must be bool, {tuple(x[:, 0].shape)}, one number '
                    f'per pixel, got {mask.dtype}, {tuple(mask.shape)}')
            # What padding holds must not get into a patch that it shares.
            x = x.masked_fill(mask[:, None], 0)
        x, shape = self.patch_embed(x)
        grid = TokenGrid((tuple(shape), ), self._token_mask(mask),
                         self.num_prefix, x.device)
        prefix = [
            token.expand(len(x), -1, -1)
            for token in (self.cls_token, self.dist_token) if token is not None
        ]
        x = torch.cat([*prefix, x], dim=1) if prefix else x
        pos = self.positional_encoding.embed(grid)
        if pos is not None and self.layers[0].join == 'input':
            x, pos = x + pos.to(x.dtype), None
        stream = PositionStream(self.positional_encoding, grid, pos)
        x = stream.enter(0, x)
        outs = []
        for i, layer in enumerate(self.layers):
            args = (x, stream.pos(i), stream.grid(i),
                    stream.terms(i, layer.terms_grid(stream.grid(i))))
            if self.with_cp and self.training:
                x = checkpoint(layer, *args, use_reentrant=False)
            else:
                x = layer(*args)
            x = stream.leave(i, x)
            if i in self.out_indices:
                last = i == self.num_layers - 1 and self.ln1 is not None
                outs.append(
                    self._output(
                        self.ln1(x) if last else x, stream.grid(i + 1)))
        return tuple(outs)

    def _token_mask(self, mask: Optional[Tensor]) -> Optional[Tensor]:
        if mask is None:
            return None
        # A patch is padding if its first pixel is.
        mask = mask[:, ::self.patch_size, ::self.patch_size].flatten(1)
        prefix = mask.new_zeros(len(mask), self.num_prefix)
        return torch.cat([prefix, mask], dim=1)

    def _output(self, x: Tensor,
                grid: TokenGrid) -> Union[Tensor, Tuple[Tensor, ...]]:
        if self.out_type == 'cls_token':
            tokens = x[:, :self.num_prefix].unbind(1)
            return tokens[0] if len(tokens) == 1 else tokens
        _, maps = grid.maps(x)
        if self.out_type == 'featmap':
            return maps[0].contiguous()
        cells = maps[0].flatten(2)
        if grid.mask is None:
            return cells.mean(2)
        valid = (~grid.mask[:, self.num_prefix:])[:, None].to(cells.dtype)
        return (cells * valid).sum(2) / valid.sum(2).clamp(min=1)
