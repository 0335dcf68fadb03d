"""Saving checkpoints so that a kill at any moment loses none."""
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator

from mmengine.config import Config
from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook
from mmengine.runner import EpochBasedTrainLoop, Runner

from .whole_files import remove_unfinished, write_whole

_TYPE = 'mmpe.engine.checkpoint_hook.WholeCheckpointHook'


class WholeCheckpointHook(CheckpointHook):
    """mmengine's hook, with the same arguments, for files on local disks.

    - Checkpoints and ``last_checkpoint`` are whole or not there; what a kill
      left unfinished is removed when the next run starts.
    - ``max_keep_ckpts`` and ``save_best`` delete the old file after the new
      one is whole, not before.
    - A checkpoint is saved before its epoch is validated. A run that is
      resumed from it validates first, so that the numbers, and the best
      checkpoint, are those of a run that was never interrupted.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.backend_args = dict(backend='mmpe.whole_files')

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        if is_main_process():
            remove_unfinished(self.out_dir, '*.pth')
            remove_unfinished(runner.work_dir, 'last_checkpoint')
        if _lacks_validation(runner):
            runner.logger.info(
                f'Epoch {runner.epoch} was saved but not validated: '
                'validating it now')
            runner.val_loop.run()

    def after_val_epoch(self, runner: Runner,
                        metrics: Dict[str, Any]) -> None:
        # Before the best checkpoint: with it the last one is saved again.
        runner.message_hub.update_info('epoch_validated', runner.epoch)
        super().after_val_epoch(runner, metrics)

    def _save_best_checkpoint(self, runner: Runner,
                              metrics: Dict[str, Any]) -> None:
        with self._removing_afterwards():
            super()._save_best_checkpoint(runner, metrics)

    def _save_checkpoint_with_step(self, runner: Runner, step: int,
                                   meta: Dict[str, Any]) -> None:
        outdated = self._outdated_by(runner, step)
        name = self.filename_tmpl.format(step)
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        runner.save_checkpoint(
            self.out_dir,
            name,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=meta,
            by_epoch=self.by_epoch,
            backend_args=self.backend_args,
            **self.args)
        if not is_main_process():
            return
        write_whole(
            Path(runner.work_dir, 'last_checkpoint'),
            lambda part: part.write_text(self.last_ckpt))
        for old in outdated:
            Path(self.out_dir, self.filename_tmpl.format(old)).unlink(
                missing_ok=True)

    def _outdated_by(self, runner: Runner, step: int) -> list:
        """Steps whose checkpoints go once that of ``step`` is saved."""
        # After a new best score the same step is saved once more.
        if self.max_keep_ckpts <= 0 or step in self.keep_ckpt_ids:
            return []
        kept = [*self.keep_ckpt_ids, step]
        outdated = kept[:-self.max_keep_ckpts]
        self.keep_ckpt_ids.append(step)  # a deque that drops what is outdated
        runner.message_hub.update_info('keep_ckpt_ids',
                                       list(self.keep_ckpt_ids))
        return outdated

    @contextmanager
    def _removing_afterwards(self) -> Iterator[None]:
        """Put off what ``file_backend`` is asked to remove."""
        remove, asked = self.file_backend.remove, []
        self.file_backend.remove = asked.append
        try:
            yield
        finally:
            self.file_backend.remove = remove
        for path in asked:
            remove(path)


def _lacks_validation(runner: Runner) -> bool:
    """Whether a resumed run should have validated its last epoch already."""
    loop = runner.train_loop
    if not isinstance(loop, EpochBasedTrainLoop) or runner.val_loop is None:
        return False
    loop._decide_current_val_interval()
    was_due = loop.epoch >= max(loop.val_begin, 1) and (
        loop.epoch % loop.val_interval == 0 or loop.epoch == loop.max_epochs)
    hub = runner.message_hub
    done = hub.runtime_info.get('epoch_validated')
    return was_due and done != loop.epoch


def save_whole_checkpoints(cfg: Config) -> None:
    """Take :class:`WholeCheckpointHook` where ``cfg`` has mmengine's own hook
    and local files; a hook of the user's stays."""
    if not cfg.get('default_hooks'):
        cfg.default_hooks = dict()
    if 'checkpoint' not in cfg.default_hooks:
        # What mmengine takes where the config names no hook.
        cfg.default_hooks.checkpoint = dict(type='CheckpointHook', interval=1)
    hook = cfg.default_hooks.checkpoint
    if hook is None or hook.get('type') not in (
            'CheckpointHook', 'mmengine.CheckpointHook', CheckpointHook):
        return
    elsewhere = hook.get('file_client_args') or hook.get('backend_args')
    if not elsewhere and '://' not in str(hook.get('out_dir')):
        hook.type = _TYPE
