"""Position encodings for detection and segmentation transformers."""
from . import environment

__version__ = '0.1.0'

# MMDetection may be missing, for mmpe.position does without: the packages that
# use it call environment.require_hosts().
environment.check('mmengine')
environment.stand_in_for_missing_ops()

# Not before the check of MMEngine.
from . import config_names  # noqa: E402

config_names.make_known()
