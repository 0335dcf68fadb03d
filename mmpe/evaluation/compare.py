"""Differences between methods, and how sure they are.

Two kinds of noise are kept apart. Which images a data set has: a paired
bootstrap over images. Which seed a training had: the spread of runs that
differ in it alone.
"""
import math
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

import numpy as np
from scipy import stats

SEED_SPREAD = 0.15
"""What is assumed of the standard deviation between seeds, in AP, where there
are too few runs to tell: two seeds differ by up to 0.3."""
ENOUGH_SEEDS = 3


def draw_images(num_images: int, resamples: int, seed: int) -> np.ndarray:
    """How often each image is drawn in each resample, ``(resamples,
    images)``. The same for all runs, so that they are compared in pairs."""
    rng = np.random.default_rng(seed)
    even = np.full(num_images, 1 / num_images)
    return rng.multinomial(num_images, even, size=resamples).astype(np.int16)


@dataclass(frozen=True)
class Difference:
    """A method's number minus the baseline's.

    Args:
        value (float): The difference of the means over seeds.
        image_error (float): Its standard error, of the images alone.
        seed_error (float): Of the seeds alone; 0 where it isn't known.
        degrees (float): Degrees of freedom of both together.
        seeds (tuple[int, int]): Runs of the method and of the baseline.
    """
    value: float
    image_error: float
    seed_error: float
    degrees: float
    seeds: Tuple[int, int]

    @property
    def covers_seeds(self) -> bool:
        """Whether the noise of training is in the interval."""
        return min(self.seeds) >= ENOUGH_SEEDS

    @property
    def error(self) -> float:
        return math.hypot(self.image_error, self.seed_error)

    def interval(self, level: float = 0.95) -> Tuple[float, float]:
        """By Student's t."""
        reach = self.error * stats.t.ppf(0.5 + level / 2, self.degrees)
        return self.value - reach, self.value + reach

    @property
    def p_value(self) -> float:
        """Of no difference, two-sided."""
        if self.error == 0:
            return 1. if self.value == 0 else 0.
        return float(
            2 * stats.t.sf(abs(self.value) / self.error, self.degrees))


def difference(own: np.ndarray, own_drawn: np.ndarray, base: np.ndarray,
               base_drawn: np.ndarray,
               num_images: int) -> Optional[Difference]:
    """Compare a method with the baseline.

    With three or more seeds a side, the variance is the sum of that of the
    resampled images, of means over seeds, and of ``s^2 / n`` of each side's
    seeds: what resampling seeds together with images gives, without what that
    loses at few seeds. The degrees of freedom are Welch's.

    Args:
        own (ndarray): The number of each run of the method, ``(runs, )``.
        own_drawn (ndarray): In each resample of the images, ``(runs, B)``.
        base (ndarray): Of the baseline.
        base_drawn (ndarray): Of the baseline, with the same images drawn.
        num_images (int): Of the data set.

    Returns:
        Difference: None if a number isn't there.
    """
    if np.isnan(own).any() or np.isnan(base).any():
        return None
    value = own.mean() - base.mean()
    drawn = own_drawn.mean(0) - base_drawn.mean(0)
    drawn = drawn[~np.isnan(drawn)]
    image_error = float(drawn.std(ddof=1)) if len(drawn) > 1 else 0.
    parts = [(image_error**2, max(num_images - 1, 1))]
    counts = len(own), len(base)
    if min(counts) >= ENOUGH_SEEDS:
        parts += [(x.var(ddof=1) / len(x), len(x) - 1) for x in (own, base)]
    total = sum(v for v, _ in parts)
    spread = sum(v**2 / n for v, n in parts)
    return Difference(
        float(value), image_error,
        math.sqrt(sum(v for v, _ in parts[1:])),
        total**2 / spread if spread > 0 else float(parts[0][1]), counts)


def seeds_needed(d: Difference, seed_spread: float = SEED_SPREAD,
                 most: int = 100) -> Optional[int]:
    """How many seeds a side would tell a difference of this size from none,
    on these images.

    Args:
        d (Difference): What was observed.
        seed_spread (float): Standard deviation between seeds.
        most (int): Where counting ends. Defaults to 100.

    Returns:
        int: None if ``most`` are too few, or the images are.
    """
    for n in range(ENOUGH_SEEDS, most + 1):
        error = math.hypot(d.image_error, seed_spread * math.sqrt(2 / n))
        if abs(d.value) > error * stats.t.ppf(0.975, 2 * n - 2):
            return n
    return None


def discoveries(p_values: Sequence[float], rate: float = 0.05) -> np.ndarray:
    """Which of many tests stand when a share ``rate`` of those that do may be
    false: the rule of Benjamini and Hochberg, bool."""
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    passed = p[order] <= rate * np.arange(1, len(p) + 1) / max(len(p), 1)
    out = np.zeros(len(p), bool)
    if passed.any():
        out[order[:np.flatnonzero(passed)[-1] + 1]] = True
    return out
