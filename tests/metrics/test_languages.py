"""Names of metrics in other languages than English."""

import pytest

from rlvitals.metrics import canonicalize, languages
from rlvitals.readers.select import reader_of

REWARDS = [-9.5, -4.25, 1.0, 3.5, 8.75, 9.0, 9.5, 9.25, 9.75, 10.0]
LINES = {
    "回合：{n}/500，奖励：{r}，探索率：0.5": "outcome/return",
    "第{n}回合 总奖励: {r} 步数: 20": "outcome/return",
    "에피소드: {n}, 총 보상: {r}, 스텝: 20": "outcome/return",
    "エピソード {n}/500 合計報酬: {r} ε: 0.10": "outcome/return",
    "Episodio {n}/500 - Recompensa total: {r} - ε: 0.1": "outcome/return",
    "Episódio {n}: Recompensa média = {r}": "outcome/reward",
    "Épisode {n} : récompense totale = {r}, pas = 20": "outcome/return",
    "Эпизод {n}: награда {r}, эпсилон 0.5": "outcome/return",
    "Episode {n}/500, Belohnung: {r}, Durchschnitt: 2.0": "outcome/return",
    "第 {n} 轮: 总奖励 {r}, 损失 0.5": "outcome/return",
    "Bölüm {n}/500, Ödül: {r}": "outcome/return",
}


@pytest.mark.parametrize(("line", "name"), LINES.items())
def test_a_printed_row_is_read_in_its_language(tmp_path, line, name):
    path = tmp_path / "train.log"
    path.write_text("".join(line.format(n=n, r=r) + "\n" for n, r in enumerate(REWARDS, 1)))
    trace = canonicalize.trace([reader_of(path).read(path, None)[0]])
    assert trace[name].values.tolist() == REWARDS
    assert trace[name].steps.tolist() == list(range(1, 11))


@pytest.mark.parametrize(
    "head", ["回合,奖励,步数", "Episodio,Recompensa,Pasos", "Épisode,Récompense,Pas"]
)
def test_a_table_is_read_in_its_language(tmp_path, head):
    path = tmp_path / "train.csv"
    rows = "".join(f"{n},{r},20\n" for n, r in enumerate(REWARDS, 1))
    path.write_text(f"{head}\n{rows}")
    trace = canonicalize.trace([reader_of(path).read(path, None)[0]])
    assert trace["outcome/reward"].values.tolist() == REWARDS
    assert trace["outcome/reward"].steps.tolist() == list(range(1, 11))


@pytest.mark.parametrize(
    "text", ["social media score", "Episode 3: reward 2.0", "pas de deux", "media", "平均"]
)
def test_other_text_stays_as_it_is(text):
    assert languages.english(text) == text


def test_a_text_that_is_no_hand_written_row_is_kept():
    text = "奖励：1 " * 500
    assert languages.english(text) == text
    assert languages.english(text[:100]).startswith("reward: 1")
