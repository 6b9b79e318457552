"""Every name has a page, and a name with several meanings shows them all."""

import pytest
from effort import cases

from rlvitals import metrics, settings
from rlvitals.errors import UsageError
from rlvitals.metrics import environments, glossary
from rlvitals.metrics.frameworks import TABLES
from rlvitals.rules import CATALOGUE
from rlvitals.views.explain import explain, known_names
from rlvitals.views.manual_page import blocks


def test_every_known_name_has_a_page():
    for name in sorted(known_names())[:: cases(5, 1)]:
        assert explain(name).startswith("# "), name


def test_every_kind_of_name_is_known():
    names = known_names()
    assert {m.name for m in metrics.CATALOGUE} <= names
    assert {r.name for r in CATALOGUE} <= names
    assert {t.name for t in glossary.TERMS} <= names
    assert {e.name for e in environments.ENVIRONMENTS} <= names
    assert {k for t in TABLES for k in (*t.keys, *t.settings)} <= names
    assert {o.key for o in settings.options("diagnose")} <= names


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("entropy", ["# term entropy", "# key entropy", "# metric exploration/entropy"]),
        ("train/approx_kl", ["# key train/approx_kl", "# metric policy/approx_kl"]),
        ("policy/approx_kl", ["# metric policy/approx_kl"]),
        ("kl-above-target", ["# rule kl-above-target"]),
        ("kl_above_target", ["# rule kl-above-target"]),
        ("target_kl", ["# setting target_kl"]),
        ("--fail-on", ["# option diagnose.fail_on"]),
        ("CartPole-v1", ["# environment CartPole"]),
        ("reward/component/format", ["# metric reward/component/..."]),
    ],
)
def test_all_meanings_are_shown(name, heads):
    headings = [line for line in explain(name).splitlines() if line.startswith("# ")]
    assert headings == heads


# Each as a guide's glossary writes it, and the page that it must lead to.
GLOSSARY = [
    ("Policy (π)", "# term policy"),
    ("Value Function (V(s))", "# term value function"),
    ("Advantage (A(s,a))", "# term advantage"),
    ("Return (Gₜ)", "# term return"),
    ("Entropy", "# term entropy"),
    ("KL Divergence", "# term KL divergence"),
    ("Clipping (PPO)", "# term clipping"),
    ("GAE (Generalized Advantage Estimation)", "# term GAE"),
    ("Explained Variance", "# term explained variance"),
    ("Average episode return", "# metric outcome/return"),
    ("Success / win rate", "# metric outcome/success_rate"),
    ("EMA (exponential moving average)", "# term EMA"),
    ("Policy loss / surrogate objective", "# metric policy/loss"),
    ("Approximate KL divergence", "# term KL divergence"),
    ("Steps per second (SPS)", "# metric throughput/steps_per_second"),
    ("Updates per second", "# metric throughput/updates_per_second"),
]


def heads(name):
    return [line for line in explain(name).splitlines() if line.startswith("# ")]


@pytest.mark.parametrize(("name", "page"), GLOSSARY)
def test_a_term_is_explained_as_the_guides_write_it(name, page):
    assert page in heads(name)


@pytest.mark.parametrize(
    ("symbol", "page"),
    [
        ("π", "# term policy"),
        ("V(s)", "# term value function"),
        ("A(s,a)", "# term advantage"),
        ("Gₜ", "# term return"),
        ("Generalized Advantage Estimation", "# term GAE"),
        ("λ", "# term GAE"),
    ],
)
def test_a_symbol_alone_is_explained(symbol, page):
    assert page in heads(symbol)


def test_both_names_beside_a_slash_are_explained():
    assert {"# metric outcome/success_rate", "# key win rate"} <= set(heads("Success / win rate"))


def test_an_unknown_name_in_brackets_stays_unknown():
    with pytest.raises(UsageError, match="flux capacitor"):
        explain("flux capacitor (F)")


def test_a_key_says_how_its_framework_measures_it():
    assert "k3, mean over the minibatches of the last epoch" in explain("train/approx_kl")


def test_a_flipped_sign_is_told():
    assert "logged x -1" in explain("train/entropy_loss")


def test_a_typo_names_the_nearest():
    with pytest.raises(UsageError) as error:
        explain("kl-above-targt")
    assert error.value.hint.startswith("did you mean kl-above-target")


def test_a_page_reads_as_blocks():
    page = "# head\n\ntwo\nlines\n\n- an item\n  goes on\n- next\n\n    a formula\n## two\nunder"
    assert [b for b in blocks(page) if b[0] != "blank"] == [
        ("heading 1", "head"),
        ("paragraph", "two lines"),
        ("item", "an item goes on"),
        ("item", "next"),
        ("formula", "a formula"),
        ("heading 2", "two"),
        ("paragraph", "under"),
    ]


def test_the_command_takes_names_with_blanks(call):
    code, out, _ = call("explain", "explained", "variance")
    assert code == 0
    assert "value/explained_variance" in out


def test_the_lists(call):
    assert "kl-above-target" in call("rules")[1]
    assert "sb3-csv" in call("readers")[1]
    assert "policy/approx_kl" in call("metrics")[1]
    assert "train/approx_kl" in call("metrics", "--framework", "sb3")[1]


def test_the_keys_of_a_run(call, healthy):
    out = call("metrics", healthy)[1]
    assert "rollout/ep_rew_mean" in out
    assert "outcome/return" in out
    unmapped = call("metrics", healthy, "--unmapped")[1]
    assert "--map my/score=outcome/score" in unmapped
    assert "rollout/ep_rew_mean" not in unmapped


def test_a_range_says_which_setting_overrides_it():
    assert "up to 0.02, or the run's `target_kl`" in explain("policy/approx_kl")


@pytest.mark.parametrize(
    ("name", "command"),
    [("verl", "rlvitals metrics --framework verl"), ("wandb", "rlvitals readers")],
)
def test_a_framework_and_a_reader_have_a_command_and_no_page(call, name, command):
    code, _, err = call("explain", name)
    assert code == 2
    assert err.endswith(f"try: {command}\n")
