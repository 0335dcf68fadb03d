"""What a difference says, in words."""
from dataclasses import dataclass
from typing import Optional

from .compare import SEED_SPREAD, Difference, seeds_needed

ENOUGH_IMAGES = 1000
"""From how many on a data set is taken to be like COCO's."""
OF_COCO = ' on COCO and more on less data'
BETTER, WORSE, EQUAL, UNCLEAR = ('better', 'worse', 'equal within the margin',
                                 "can't tell")


@dataclass(frozen=True)
class Verdict:
    """Of a method against the baseline.

    Args:
        word (str): ``'better'``, ``'worse'``, ``'equal within the margin'``
            or ``"can't tell"``.
        about (str): ``'these checkpoints'`` or ``'the encoding'``.
        reason (str): A sentence or two.
        attributable (bool): Whether it is known that nothing but the
            encodings differs.
        seed_spread (float, optional): The standard deviation between seeds
            that ``seeds_needed`` takes; None if nothing is known of it.
        spread_is_assumed (bool): Whether no runs show it.
        seeds_needed (int, optional): How many seeds a side the observed
            difference would need; None if no number up to 100 is enough, or
            the spread isn't known.
    """
    word: str
    about: str
    reason: str
    attributable: bool
    seed_spread: Optional[float]
    spread_is_assumed: bool
    seeds_needed: Optional[int]


def judge(d: Difference,
          margin: float,
          attributable: Optional[bool],
          seed_spread: Optional[float] = None,
          num_images: int = ENOUGH_IMAGES) -> Verdict:
    """Judge a difference in AP.

    Args:
        d (Difference): In points of AP.
        margin (float): Differences up to this are as good as none. Two
            one-sided tests at 5% must show that it isn't larger.
        attributable (bool, optional): Whether nothing but the encodings
            differs; None if that isn't known.
        seed_spread (float, optional): Standard deviation between seeds, where
            runs show it. Defaults to what COCO is known for.
        num_images (int): Of the data set; of few, nothing is assumed.
    """
    low, high = d.interval()
    inner = d.interval(0.9)
    sizes = f'{d.value:+.2f} AP, 95% interval {low:+.2f} to {high:+.2f}'
    if d.value and not d.error:
        word = UNCLEAR
        reason = (f'{d.value:+.2f} AP, but all resamples of the images are '
                  'alike: there are too few with objects')
    elif -margin < inner[0] and inner[1] < margin:
        word = EQUAL
        reason = (f'{sizes}; the 90% interval is inside the margin of '
                  f'{margin:g} AP')
    elif low > 0 or high < 0:
        word = BETTER if low > 0 else WORSE
        reason = f'{sizes}, without 0'
    else:
        word = UNCLEAR
        reason = (f'{sizes}: with 0 in it, and wider than the margin of '
                  f'{margin:g} AP')
    if d.covers_seeds:
        about = 'the encoding' if attributable else 'the methods'
        reason += (f". Student's t with {d.seeds[0]} and {d.seeds[1]} seeds "
                   f'({d.degrees:.1f} degrees of freedom); images and '
                   'training are both in it.')
    else:
        about = 'these checkpoints'
        noise = (f'about 0.3 AP between two seeds{OF_COCO}'
                 if seed_spread is None else
                 f'{seed_spread:.2f} AP from seed to seed of these runs '
                 '(standard deviation)')
        reason += (f'. It is of the images alone: the noise of training, '
                   f'{noise}, is not in it; {about} are compared, not ways to '
                   'train.')
    if attributable is None:
        reason += (' Without configs it is not known whether anything but the '
                   'encodings differs.')
    elif not attributable:
        reason += (' Not attributable to the encoding: the methods differ in '
                   'more, see “Same work?”.')
    assumed = seed_spread is None
    if assumed and num_images >= ENOUGH_IMAGES:
        seed_spread = SEED_SPREAD
    needed = None if seed_spread is None else seeds_needed(d, seed_spread)
    return Verdict(word, about, reason, bool(attributable), seed_spread,
                   assumed, needed)
