"""Registries of scope ``mmpe``: ``mmpe.X`` resolves as a type in any config.

They are children of mmengine's root registries, so MMDetection and
MMSegmentation configs find them without ``custom_imports``.
"""
from importlib import import_module
from typing import Optional

from mmengine.registry import DefaultScope, Registry, root


class GuestRegistry(Registry):
    """Finds what it hasn't got in the scope around it, else in MMDetection's.

    Where a config's base is ``mmpe::...``, MMEngine takes the base's types
    for those of scope ``mmpe``; but ``PackDetInputs`` is MMDetection's.
    """

    def get(self, key: str) -> Optional[type]:
        """Same as the base class's."""
        scope, name = self.split_scope_key(key)
        if scope is None:
            self.import_from_location()
            host = self._host()
            if name not in self.module_dict and host is not None:
                return host.get(key)
        return super().get(key)

    def _host(self) -> Optional[Registry]:
        scopes = [s.scope_name for s in DefaultScope._instance_dict.values()]
        scopes = ['mmdet'] + [s for s in scopes if s != self.scope]
        try:
            import_module(f'{scopes[-1]}.registry')
        except ImportError:
            return None
        return self.root.children.get(scopes[-1])


def _make_child(parent: Registry, *locations: str) -> Registry:
    # Without a location MMEngine would import all modules of the package.
    return GuestRegistry(
        parent.name,
        parent=parent,
        scope='mmpe',
        locations=list(locations) or [__name__])


MODELS = _make_child(root.MODELS, 'mmpe.position', 'mmpe.backbones',
                     'mmpe.necks', 'mmpe.detectors', 'mmpe.segmentors')
for _root in vars(root).values():
    if isinstance(_root, Registry) and _root is not root.MODELS:
        _make_child(_root)
