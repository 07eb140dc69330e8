"""The words by which replies of several languages declare, reject or qualify an option."""

from __future__ import annotations

import re

_ADJECTIVE = (
    r"(?:final|correct|right|best|most\s+(?:likely|appropriate|accurate)|chosen|only|proper|valid"
    r"|selected|true|own)"
)
_LATIN_IS = (
    r"(?:is|was|are|would\s+be|will\s+be|should\s+be|must\s+be|remains|es|ser[ií]a|est|serait|ist"
    r"|lautet|w[äa]re|é|è|seria|sarebbe|adalah|ialah|là|jest|to)"
)
_NOUN2 = (
    r"(?:(?:the|la|le|l'|die|a|o|el)?\s*(?:option|choice|letter|answer|alternative|opci[oó]n|opç[aã]o"
    r"|r[ée]ponse|antwort|letra|lettre|lettera|buchstabe|alternativa|opzione|вариант|选项|選項)\b|(?:la|die|the|el|il|lo)(?=\s))?"
)
_LATIN_NOUN = (
    r"(?:answer|correct(?:\s+one)?|result|choice|option|selection|response|respuesta|opci[oó]n|alternativa|resposta|opç[aã]o"
    r"|r[ée]ponse|antwort|l[öo]sung|risposta|opzione|antwoord|jawaban(?:nya)?|đáp\s+án|odpowied[zź]"
    r"|cevap|yan[ıi]t|svar(?:et)?|vastaus)"
)
_LATIN_AFTER = (
    r"(?:\s+(?:corr?e[ct]?t[aeo]|correct|finale?|corretta|giusta|certa|yang\s+benar|đúng|here))?"
)

FORWARD = (
    rf"\b{_LATIN_NOUN}{_LATIN_AFTER}\s*(?:{_LATIN_IS}(?=\W)|:|=|->|→|-(?=\s))\s*:?\s*"
    rf"(?:definitely|clearly|simply)?\s*{_NOUN2}\s*:?",
    r"\b(?:I|we)(?:'d|'ll|\s+would|\s+will|\s+have\s+to|\s+must)?\s*"
    r"(?:choose|pick|select|go\s+with|opt\s+for|answer|say)(?=\W)\s*(?:with\s+)?"
    r"(?:the\s+)?(?:option|choice|letter|answer)?\s*:?",
    r"\b(?:it(?:'s|\s+is)|it\s+must\s+be|going\s+with|(?:^|(?<=[.\n]))\s*(?:choose|select|pick))(?=\W)"
    r"\s*(?:definitely|clearly)?\s*(?:option|choice|letter|answer)?\s*:?",
    r"(?:答案|正解|回答|解答|答え)\s*(?:应该|應該|就)?\s*(?:是|为|為|选|選|は|:|=|】)+\s*"
    r"(?:选项|選項|選択肢)?\s*:?",
    r"(?:选项|選項)\s*(?:是|为|為|:|=)+\s*",
    r"(?:认为|認為|觉得|覺得)\s*(?:应该|應該)?\s*(?:是|为|為|选|選)\s*(?:选项|選項)?\s*",
    r"(?:选|選)(?:择|擇)?(?:选项|選項)?\s*(?:是|:)?\s*",
    r"(?:정답|답변|답)\s*(?:은|는|이|:|=)+\s*",
    r"(?:ответ|вариант)\s*(?:это|:|=|-|—|–|является)*\s*(?:вариант)?\s*",
    r"(?:الإجابة|الجواب)(?:\s+الصحيحة|\s+الصحيح)?\s*(?:هي|هو|:)\s*",
    r"(?:उत्तर|जवाब)\s*(?:है|:|-)?\s*",
    r"(?:คำตอบ)\s*(?:คือ|:)\s*",
)
"""What stands before a declared letter."""

REVERSE = (
    r"\s*(?:(?:is|would\s+be|seems|es|est|ist|é|è)\s+(?:clearly\s+|definitely\s+)?(?:the\s+|la\s+|die\s+)?"
    rf"{_ADJECTIVE}(?=\W|$)"
    r"|is\s+the\s+answer|(?:es|est|ist|é|è)\s+(?:la\s+|die\s+)?(?:correct[ao]?|richtige?|bonne|certa|giusta)"
    r"|(?:选项|選項)?\s*(?:才)?(?:是|为|為)?(?:最)?(?:对的|正确|正確|對的|符合)"
    r"|が?(?:正解|正しい)|(?:이|가)\s*(?:정답|맞))"
)
"""What stands after a letter that is declared right."""

OPTION = (
    r"option|choice|letter|answer|opci[oó]n|opç[aã]o|r[ée]ponse|antwort|选项|選項|選択肢|вариант"
)
BARE = (
    r"(?:the\s+)?(?:(?:final|correct|best|right)\s+)?(?:option|choice|letter|answer|ans|choose|select|correct|result)"
    r"|opci[oó]n|respuesta|opç[aã]o|resposta|r[ée]ponse|antwort|risposta|ответ|答案|答|选择?|選擇?|选项|選項"
    r"|答え|正解|정답|답"
)
CONNECTIVE = (
    r"because|since|as|for|given|due|based|which|that|here|porque|pues|ya\s+que|parce|car|puisque"
    r"|weil|denn|da|perché|poiché|karena|потому|так\s+как"
)
NEGATION = re.compile(
    r"\b(?:not|never|doubt|neither|nor|cannot|isn't|can't|don't|doesn't|won't|wasn't|unsure|unclear"
    r"|rule[sd]?\s+out|exclude[sd]?|eliminate[sd]?|no\s+es|n'est|nicht|kein|não|non|не)\b"
    r"|不|别选|非|没|沒|排除|ない|아니",
    re.IGNORECASE,
)
CONDITION = re.compile(
    r"\b(?:if|whether|unless|suppos\w+|assum\w+|maybe|perhaps|might|could|possibly|probably\s+not|either"
    r"|peut-être|quizás|tal\s+vez|vielleicht|si(?!\s*,)|ob|wenn|talvez)\b|如果|假如|若|也许|可能|もし|かもしれ|만약",
    re.IGNORECASE,
)
REJECTED = re.compile(
    r"\s*(?:,\s*)?(?:is|was|are|seems|looks|can\s+be|es|est|ist|é|è)?\s*(?:clearly\s+|definitely\s+)?"
    r"(?:not\b|isn't|wrong|incorrect|false|invalid|unlikely|impossible|ruled\s+out|eliminated|out\b"
    r"|excluded|incorrect[ao]|falsch|faux|不|错|錯|误|ではな|아니)",
    re.IGNORECASE,
)
RETRACTION = re.compile(
    r"\b(?:wait|actually|no\s*,|correction|sorry|scratch\s+that|second\s+thought|instead|rather|i\s+mean)"
    r"|不对|等等|更正|其实",
    re.IGNORECASE,
)
FINAL = re.compile(r"\bfinal|definitiv|最终|最後|最終|최종|окончательн", re.IGNORECASE)
REVISION = re.compile(
    r"\b(?:wait|actually|correction|sorry|second\s+thought|instead|no\b|let\s+me|re-?check|on\s+reflection"
    r"|however|therefore|thus|hence|so\b|finally|mistake|revis\w+|changed?)\b"
    r"|不对|不是|等等|更正|其实|应该|所以|因此|最终|いや|訂正|아니",
    re.IGNORECASE,
)
