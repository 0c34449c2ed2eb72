"""The page of one claim: what the paper says, where, and the command that measures it again."""

from __future__ import annotations

from html import escape

from polyrelu.claims import PAPERS, for_profile, select

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{id}: a claim</title><link rel="stylesheet" href="/static/style.css">
<body class="claim"><main><h1>{id}</h1><p class="sentence">{sentence}</p>
<dl><dt>Source</dt><dd>{source}, {where}</dd><dt>Published</dt><dd>{published}</dd>
<dt>What we expect to measure</dt><dd><b>{verdict}</b> {reason}</dd>
<dt>Measure it again</dt><dd><code>polyrelu claims run {id}</code></dd></dl></main></body></html>
"""


def claim_page(name: str) -> str:
    """HTML of one claim; an id that there is not is refused."""
    claim = select([name])[0]
    paper = PAPERS.get(claim.paper)
    words = {
        "id": claim.id,
        "sentence": claim.sentence,
        "source": claim.paper if paper is None else paper.citation,
        "where": claim.where,
        "published": claim.published or "no number",
        "verdict": for_profile(claim.expects, "quick").value,
        "reason": for_profile(claim.reason, "quick"),
    }
    return PAGE.format(**{key: escape(value) for key, value in words.items()})
