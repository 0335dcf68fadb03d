"""Rows of published tables."""
from work_dirs import config

from mmpe.evaluation.encodings import encodings_in_words
from mmpe.evaluation.published import ROWS


def row(method, encoding, epochs, source):
    found, = [r for r in ROWS if source in r.source and (
        r.method, r.encoding, r.epochs) == (method, encoding, epochs)]
    return found


def test_rows_are_told_apart_and_complete():
    keys = [(r.method, r.encoding, r.epochs, r.source) for r in ROWS]
    assert len(set(keys)) == len(keys)
    for r in ROWS:
        assert 'https://' in r.source and r.epochs > 0
        assert 30 < r.ap < 50
        sizes = r.ap_small, r.ap_medium, r.ap_large
        if None not in sizes:
            assert r.ap_small < r.ap_medium < r.ap_large
        if r.ap50 is not None:
            assert r.ap75 < r.ap50 and r.ap < r.ap50


def test_encodings_are_in_the_words_of_our_configs():
    for name, epochs, ap in (('detr_r50_irpe_8xb2-150e_coco', 150, 41.0),
                             ('detr_r50_irpe_8xb2-300e_coco', 300, 42.2),
                             ('detr_r50_irpe-ratio1.9_8xb2-150e_coco', 150,
                              40.9)):
        words = encodings_in_words(config(f'detr/{name}'))
        assert row('DETR R50', words, epochs, 'Cream').ap == ap
    words = encodings_in_words(
        config('detr/detr_r50_none-everywhere_8xb4-50e_coco'))
    assert row('DETR R50', words, 300, '2005.12872').ap == 32.8


def test_the_table_of_cpvt():
    """CPVT's point: PEG instead of the sine, at 50 epochs."""
    aps = [row('DETR R50', words, 50, 'CPVT').ap
           for words in ('none', 'sine', 'PEG')]
    assert aps == [32.8, 33.7, 33.9]
