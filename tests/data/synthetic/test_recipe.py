import pytest
import torch

from polyrelu.data import parse_clusters
from polyrelu.data.synthetic.recipe import recipe_text
from polyrelu.errors import InputError


@pytest.mark.parametrize(("text", "counts"), [("6+4", (6, 4)), (" 12 + 8 ", (12, 8)), ("1+1", (1, 1))])
def test_clusters(text, counts):
    assert parse_clusters(text) == counts


@pytest.mark.parametrize("text", ["", "6", "6-4", "6+4+2", "0+4", "6+0", "-6+4", "a+b", "6.0+4", "+", "٣+٤", None])
def test_bad_clusters_are_named(text):
    with pytest.raises(InputError) as caught:
        parse_clusters(text)
    assert str(caught.value) == (
        f"clusters={text}: expected two counts >= 1 joined by '+', such as 6+4 (6 positive, 4 negative clusters)."
    )


def test_recipe_text_is_what_a_person_would_type():
    text = recipe_text("mixture", dim=3, alpha=0.1, scale=2.0, rotate=None, dtype=torch.float64, n=10)
    assert text == "mixture:dim=3,alpha=0.1,scale=2,dtype=float64,n=10"
