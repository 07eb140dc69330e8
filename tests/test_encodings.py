"""Captions whose encoding no one has written down: a mark, UTF-8, else a guess that is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench_lib.errors import BenchError
from bench_lib.texts import Unreadable, encodings

SAID = {
    "gb18030": """
        你好，世界 | 钥匙在桌子上 | 我们走吧 | 谁把门打开了？ | 今天晚上吃什么 |
        等一下，我马上来 | 他刚才在厨房里 | 把杯子放到柜子里 | 没关系 | 这个多少钱？ |
        请帮我找一下眼镜 | 好的 | 水开了，可以关火了 | 你昨天去哪儿了 | 快看外面下雪了 |
        我不知道他在说什么
    """,
    "cp950": """
        你好，世界 | 鑰匙在桌子上 | 我們走吧 | 誰把門打開了？ | 今天晚上吃什麼 |
        等一下，我馬上來 | 他剛才在廚房裡 | 把杯子放到櫃子裡 | 沒關係 | 這個多少錢？ |
        請幫我找一下眼鏡 | 水開了，可以關火了 | 你昨天去哪裡了 | 快看外面下雪了 |
        我不知道他在說什麼
    """,
    "cp932": """
        こんにちは | 鍵は机の上にあります | 行きましょう | 誰がドアを開けたの？ |
        今晩は何を食べる | ちょっと待って、すぐ行く | さっき台所にいた | コップを棚に入れて |
        大丈夫です | いくらですか？ | 眼鏡を探してください | お湯が沸いたよ | 昨日どこへ行ったの |
        外は雪だ | テレビを消して
    """,
    "euc_jp": """
        こんにちは、世界 | 鍵は机の上にあります | 誰がドアを開けたの？ | コップを棚に入れて
    """,
    "cp949": """
        안녕하세요 | 열쇠는 책상 위에 있어요 | 갑시다 | 누가 문을 열었어? |
        오늘 저녁에 뭐 먹을까 | 잠깐만요, 금방 갈게요 | 아까 부엌에 있었어요 |
        컵을 찬장에 넣어 주세요 | 괜찮아요 | 얼마예요? | 안경 좀 찾아 줘 | 물이 끓었어요 |
        어제 어디 갔었어 | 밖에 눈이 와요 | 감사합니다
    """,
    "cp1252": """
        Où est la clé ? | C'est déjà fini. | Das Frühstück ist fertig | ¿Dónde está la llave? |
        Mañana por la mañana | Perché no? | Não sei onde está | Var är nyckeln? | På bordet |
        Schöne Grüße | Ça va très bien | L’été à la plage | Hvor er nøglen? | Está bien |
        Wo ist der Schlüssel? | “Well,” she said | It’s here | Vähän kahvia | El niño come
    """,
    "cp1251": """
        Привет, мир | Где ключи? | Пойдём | Кто открыл дверь? | Что на ужин | Подожди, я сейчас |
        Он был на кухне | Поставь чашку в шкаф | Ничего | Сколько стоит? | Де мої ключі? |
        Вода закипела | Къде е ключът? | На улице снег | Спасибо большое
    """,
    "koi8_r": """
        Привет, мир | Где ключи? | Кто открыл дверь?
    """,
    "cp1250": """
        Gdzie są moje klucze? | Kde jsou moje klíče, prosím tě? |
        Hol van a kulcsom, kérem? Őt kérdezd
    """,
    "cp1253": """
        Πού είναι τα κλειδιά μου; | Ευχαριστώ πολύ
    """,
    "cp1254": """
        Anahtarlarım nerede, bulamıyorum?
    """,
    "cp1255": """
        איפה המפתחות שלי? | תודה רבה
    """,
    "cp1256": """
        أين المفاتيح؟ لا أجدها | شكرا جزيلا
    """,
    "cp874": """
        กุญแจของฉันอยู่ที่ไหน | ขอบคุณมากค่ะ
    """,
}
SAID = {
    k: [one.strip() for one in re.split(r"[|\n]", text) if one.strip()] for k, text in SAID.items()
}


def caption(said: str) -> str:
    return f"1\r\n00:00:01,000 --> 00:00:02,500\r\n{said}\r\n"


def read(folder: Path, data: bytes, **how: str) -> encodings.Text:
    path = folder / "a.srt"
    path.write_bytes(data)
    return encodings.read(path, **how)


@pytest.mark.parametrize("encoding", SAID)
def test_one_short_caption_is_read_in_its_encoding(tmp_path: Path, encoding: str) -> None:
    for said in SAID[encoding]:
        text = read(tmp_path, caption(said).encode(encoding))
        assert text.text == caption(said), (said, str(text))
        assert text.how.startswith("guessed")


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_never_guessed(tmp_path: Path, codec: str) -> None:
    for said in (*SAID["gb18030"], "plain words", "café", "\u2028\x85"):
        text = read(tmp_path, caption(said).encode(codec))
        assert text.text == caption(said)
        assert "guessed" not in str(text)


def test_what_is_given_holds(tmp_path: Path) -> None:
    data = "Où est la clé ?".encode("cp1252")
    assert read(tmp_path, data, otherwise="cp1251").text == "Oщ est la clй ?"
    assert str(read(tmp_path, data, encoding="cp1251")) == "cp1251, as given"
    plain = "Où est la clé ?".encode()
    assert read(tmp_path, plain, otherwise="cp1251").text == "Où est la clé ?"
    assert read(tmp_path, plain, encoding="cp1252").text == "OÃ¹ est la clÃ© ?"
    assert encodings.known("GBK") == "gbk"
    for name in ("klingon", "rot13", "hex", "a\0b"):
        with pytest.raises(BenchError, match="is not known"):
            encodings.known(name)


def test_a_second_reading_that_is_nearly_as_likely_is_named(tmp_path: Path) -> None:
    told = str(read(tmp_path, "zijn carrière".encode("cp1252")))
    assert re.fullmatch(r"cp125\d, guessed, cp125\d is nearly as likely", told)
    assert "likely" not in str(read(tmp_path, caption("Кто открыл дверь?").encode("cp1251")))


def test_damage_is_counted_and_does_not_change_the_encoding(tmp_path: Path) -> None:
    long = "".join(map(caption, SAID["gb18030"]))
    text = read(tmp_path, long.encode("gb18030") + b"\r\n\xff\r\n")
    assert (text.encoding, text.lost) == ("gb18030", 1)
    text = read(tmp_path, long.encode() + b"\xe4\xbd\r\n")
    assert (text.encoding, text.lost) == ("utf-8", 1)
    assert read(tmp_path, "was lost: \ufffd\ufffd".encode()).lost == 2


def test_zero_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, b"a" * 100 + b"\0" * 4).text == "a" * 100
    with pytest.raises(Unreadable, match="zero bytes"):
        read(tmp_path, bytes(range(16)) + b"\0\0\0a\0\0bb")
    with pytest.raises(Unreadable, match="cannot be read"):
        encodings.read(tmp_path)
    assert read(tmp_path, b"").text == ""
