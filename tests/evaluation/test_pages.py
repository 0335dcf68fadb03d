"""A report's pages say what the report says; text of files stays text."""
import base64
import json
import re
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.console import Console

from mmpe.evaluation import page_figures
from mmpe.evaluation.average_precision import METRICS
from mmpe.evaluation.pages import summary, write_report
from mmpe.evaluation.wording import number
from made_report import Maker, with_facts

EVIL = ['<script>alert(1)</script>', '"><img src=x onerror=alert(2)>',
        "'); DROP | `rm` $x^2$ \\end{table}%_#&~{}", '猫\u202e\n# [a](b)']
VOID = {'meta', 'img', 'path', 'wbr', 'br', 'link', 'input', 'hr'}


class Page(HTMLParser):
    """The elements, attributes, tables and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.tables = [], [], []
        self.text, self.stack = '', []
        self.feed(text)
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag == 'table':
            self.tables.append([])
        elif tag == 'tr':
            self.tables[-1].append([])
        elif tag in ('td', 'th'):
            self.tables[-1][-1].append('')
        elif tag == 'small' and self.in_cell:
            self.tables[-1][-1][-1] += ' '
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.stack.pop() == tag

    @property
    def in_cell(self):
        return 'td' in self.stack or 'th' in self.stack

    def handle_data(self, data):
        if 'style' in self.stack:
            return
        self.text += data
        if self.in_cell:
            self.tables[-1][-1][-1] += data

    def table(self, *heads):
        """Rows by their first cell of the table with these headings."""
        found = next(t for t in self.tables
                     if set(heads) <= {c.strip() for c in t[0]})
        titles = [c.strip() for c in found[0]]
        return {
            row[0].strip(): dict(zip(titles, (c.strip() for c in row)))
            for row in found[1:]
        }


def write(report, folder):
    files = write_report(report, folder)
    assert set(files) == {'html', 'md', 'tex', 'json'}
    assert sorted(folder.iterdir()) == sorted(files.values())
    return {end: path.read_text(encoding='utf-8')
            for end, path in files.items()}


@pytest.fixture(scope='module')
def three():
    return with_facts(Maker(['sine', 'peg', 'irpe'], 3).report)


@pytest.fixture(scope='module')
def texts(three, tmp_path_factory):
    return write(three, tmp_path_factory.mktemp('three'))


def test_the_table_has_the_numbers_of_the_report(three, texts):
    page = Page(texts['html'])
    rows = page.table('encodings', *METRICS)
    for method, entry in three['results']['bbox']['methods'].items():
        for metric in METRICS:
            found, own = rows[method][metric], entry['numbers'][metric]
            if own is None:
                assert found == 'n/a'
                continue
            assert found.split()[0] == number(own['value'])
            assert number(own['value']) in texts['md']
            assert number(own['value']) in texts['tex']
        ap = entry['numbers']['AP']
        assert rows[method]['AP'].split(None, 1)[1] == (
            f'{ap["low"]:.1f} to {ap["high"]:.1f}')
    assert rows['peg']['parameters'] == '41.6M encoding 15.6k'
    assert rows['peg']['GFLOPs'] == 'n/a' and rows['sine']['GFLOPs'] == '86.2'
    published = next(v for k, v in rows.items() if 'published' in k)
    assert published['AP'] == '33.9' and published['epochs'] == '50'
    assert published['AP50'] == '–' and published['encodings'] == 'PEG'


def test_differences_runs_and_classes(three, texts):
    page, results = Page(texts['html']), three['results']['bbox']
    rows = page.table('minus sine')
    runs = page.table('run', 'detections')
    assert len(runs) == 9 and len(rows) == 2
    for c in results['comparisons']:
        ap = c['numbers']['AP']
        assert rows[c['method']]['AP'] == (
            f'{number(ap["value"], 2, True)} {number(ap["low"], 2, True)} to '
            f'{number(ap["high"], 2, True)}')
        assert rows[c['method']]['APS'] == 'n/a'
        for name, value in results['methods'][c['method']]['numbers']['AP'][
                'runs'].items():
            assert runs[name]['AP'] == f'{value:.2f}'
    classes = page.table('class', 'objects')
    assert list(classes) == ['person', 'cat', 'kite']
    assert '●' in classes['cat']['peg'] and '●' not in classes['kite']['peg']
    assert '1 class with under 20 objects' in page.text
    assert '1 class without objects' in page.text


def test_verdicts_say_what_they_rest_on(three, texts):
    text = ' '.join(Page(texts['html']).text.split())
    for end, found in (('html', text), ('md', texts['md'])):
        assert '−0.12 AP, 95% interval −0.50 to +0.26' in found, end
        assert 'not even 100 seeds a side' in found
        assert 'would need 7 seeds a side' in found
    assert text.count('not attributable to the encoding') == 1
    assert 'Not comparable.' in text and 'Not comparable.' in texts['md']
    assert 'the other 8' in text and 'pegnever' in text


def test_json_is_the_report_without_pixels(three, texts):
    plain = json.loads(json.dumps(three))
    for images in plain['pictures'].values():
        for image in images:
            del image['picture']
    assert json.loads(texts['json']) == plain


def test_nothing_is_fetched_and_nothing_runs(texts):
    page = Page(texts['html'])
    links = [v for _, k, v in page.attributes if k == 'href']
    assert [v for v in links if not v.startswith('#')] == [
        'https://arxiv.org/abs/2102.10882v1']
    ids = [v for _, k, v in page.attributes if k == 'id']
    assert len(ids) == len(set(ids))
    assert all(v[1:] in ids for v in links if v.startswith('#'))
    for _, key, value in page.attributes:
        assert not key.startswith('on')
        if key in ('src', 'srcset', 'data', 'action'):
            assert value.startswith('data:image/')
    assert 'script' not in page.tags and 'link' not in page.tags
    style = re.search('<style>(.*?)</style>', texts['html'], re.S)[1]
    assert 'url(' not in style and '@import' not in style


def test_what_files_say_is_text(texts, tmp_path):
    usual = Page(texts['html'])
    report = with_facts(Maker(EVIL, classes=EVIL).report)
    data = report['data']
    data['ann_file'] = f'/data/{EVIL[0]}/{EVIL[1]}.json'
    data['notes'] = [EVIL[0]]
    report['published'] = [
        dict(method=EVIL[1], encoding=EVIL[0], epochs=None, AP=1.,
             source=EVIL[0], url=url)
        for url in ('javascript:alert(1)', 'https://a.b/"><img src=x> y')]
    for finding in report['same_work']['findings']:
        finding.update(what=EVIL[1], values=dict.fromkeys(EVIL, EVIL[0]))
    for run in report['runs']:
        run.update(path=EVIL[1], checkpoint=EVIL[0], versions={
            EVIL[1]: EVIL[0]})
    report['pictures']['random'][0]['file_name'] = EVIL[1]
    texts = write(report, tmp_path)
    page = Page(texts['html'])
    assert set(page.tags) <= set(usual.tags)
    assert {a[:2] for a in page.attributes} <= {
        a[:2] for a in usual.attributes}
    assert all(v.startswith('data:image/') for tag, key, v in page.attributes
               if (tag, key) == ('img', 'src'))
    assert all(name in page.text for name in EVIL)
    assert not any(str(v).startswith('javascript') for *_, v in
                   page.attributes)
    for start in ('<script', '<img'):
        assert start not in texts['md'] and start not in texts['tex']
    for line in texts['md'].splitlines():
        if 'DROP' in line:
            assert '\\| \\`rm\\` \\$x^2\\$' in line
    assert re.search(r'(?m)^#+ \[', texts['md']) is None
    for line in texts['tex'].splitlines():
        if 'DROP' in line:
            assert (r"DROP \textbar{} `rm` \$x\textasciicircum{}2\$ "
                    r'\textbackslash{}end\{table\}\%\_\#\&') in line
    assert texts['tex'].count('\\end{table}') == 1
    terminal = Console(file=StringIO(), width=200)
    terminal.print(summary(report))
    assert EVIL[0] in terminal.file.getvalue()


def test_one_run(tmp_path):
    report = Maker(['alone'], kinds=('bbox', 'segm')).report
    texts = write(report, tmp_path)
    page = Page(texts['html'])
    assert 'erdicts' not in page.text and 'baseline' not in page.text
    assert page.text.index('Boxes: where') < page.text.index('Masks: table')
    assert texts['md'].index('## Boxes') < texts['md'].index('## Masks')
    assert texts['tex'].count('\\end{table}') == 2
    assert page.table('method', *METRICS)['alone']['APS'] == 'n/a'
    assert 'nothing is compared' in texts['md']
    assert list(page.table('class')) == ['person', 'cat', 'kite', 'dog']
    terminal = Console(file=StringIO(), width=80)
    terminal.print(summary(report))
    assert 'verdict' not in terminal.file.getvalue()


def test_nothing_to_find_and_nothing_found(tmp_path):
    report = Maker(['a', 'b']).report
    results = report['results']['bbox']
    for method in results['methods'].values():
        method['numbers'] = dict.fromkeys(METRICS)
        method['by_threshold'] = [None] * 10
    for c in results['comparisons']:
        c.update(numbers=dict.fromkeys(METRICS), verdict=None, classes=[],
                 small_classes=[], by_threshold=[
                     dict(threshold=t['threshold'])
                     for t in c['by_threshold']])
    for part in (*results['where']['groups'].values(),
                 results['where']['errors']):
        n = len(part['names'])
        part.update(methods={m: [None] * n for m in part['methods']},
                    differences={m: [None] * n for m in part['differences']})
        if 'objects' in part:
            part['objects'] = [0] * n
    results['where']['aspects']['images'] = [0] * 4
    report['pictures'] = dict(most_different=[], random=[])
    texts = write(report, tmp_path)
    row = Page(texts['html']).table('method', *METRICS)['b']
    assert {row[m] for m in METRICS} == {'n/a'}
    Console(file=StringIO()).print(summary(report))


@pytest.mark.parametrize('count', [1, 10])
def test_figures_are_whole_and_safe(count):
    names = [f'detr_r50_{EVIL[i % 4]}_8xb4-50e_coco_{i}'
             for i in range(count)]
    report = with_facts(Maker(names).report)
    pictures = [
        *page_figures.forest(report, 'bbox'), *page_figures.curves(report),
        *(p for block in page_figures.where_blocks(report, 'bbox')
          for p in block.pictures)
    ]
    # Each method but the baseline has a place map of its own.
    assert len(pictures) == (12 if count == 1 else 17 + count)
    for src, alt, caption in pictures:
        head, data = src.split(',')
        assert head == 'data:image/svg+xml;base64' and alt and caption
        root = ElementTree.fromstring(base64.b64decode(data))
        for element in root.iter():
            assert element.tag.rpartition('}')[2] not in ('script', 'image')
            assert not any(k.startswith('on') for k in element.attrib)
            for key, value in element.attrib.items():
                assert not key.endswith('href') or value.startswith('#')


def test_methods_keep_their_style(three):
    styles = page_figures.method_styles(three)
    many = page_figures.method_styles(Maker([str(i) for i in range(30)]
                                            ).report)
    assert list(styles.values()) == list(many.values())[:3]
    assert len(set(many.values())) == 30


def test_numbers_in_words():
    assert number(-0.04) == '0.0' and number(-0.05, 2) == '−0.05'
    assert number(None) == 'n/a' and number(0., 2, True) == '0.00'
    assert number(1234.5, 1, True) == '+1,234.5'
