from __future__ import annotations

import pytest
import torch
from backbone_cases import noise_frames, uneven, whole

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.prompt import Prompt, Visual, grid_times


def still(backbone: Backbone, times_s: list[float], cells: tuple[int, int] = (4, 4)) -> Visual:
    grids = (len(times_s) + 1) // 2
    tokens = torch.zeros(grids, cells[0] * cells[1], backbone.width)
    return Visual.whole(tokens, times_s, cells)


def rows_of(backbone: Backbone, prompt: Prompt) -> list[list[int]]:
    return prompt.build().positions.tolist()


def test_published_layout_of_qwen2_5(tiny: Backbone) -> None:
    """Three words, four grids of 8 x 8 patches at one frame a second, three words.

    What transformers 4.57.6 and the release give: grids at 3, 7, 11, 15, then 16, 17, 18. The start
    and end markers of the video count among the words.
    """
    prompt = Prompt(tiny).text("ab").show(still(tiny, [float(i) for i in range(8)])).text("ab")
    t, h, w = rows_of(tiny, prompt)
    assert t[:3] == h[:3] == w[:3] == [0, 1, 2]
    video = slice(3, 3 + 64)
    assert t[video] == [3] * 16 + [7] * 16 + [11] * 16 + [15] * 16
    assert h[video] == [3 + cell // 4 for cell in range(16)] * 4
    assert w[video] == [3 + cell % 4 for cell in range(16)] * 4
    assert t[67:] == h[67:] == w[67:] == [16, 17, 18]
    assert prompt.next == 19


@pytest.mark.parametrize(("fps", "steps"), [(0.5, 8), (1.0, 4), (2.0, 2), (4.0, 1)])
def test_a_grid_stands_at_its_time(tiny: Backbone, fps: float, steps: int) -> None:
    prompt = Prompt(tiny).show(still(tiny, [i / fps for i in range(6)]))
    t = rows_of(tiny, prompt)[0][1:-1]
    assert sorted(set(t)) == [1, 1 + steps, 1 + 2 * steps]


def test_a_wide_frame_pushes_the_text_behind_its_width(tiny: Backbone) -> None:
    prompt = Prompt(tiny).show(still(tiny, [0.0, 1.0], cells=(1, 9))).text("a")
    assert [axis[-1] for axis in rows_of(tiny, prompt)] == [11, 11, 11]


def test_images_are_laid_out_as_in_the_library(backbone: Backbone) -> None:
    prompt = Prompt(backbone).text("ab")
    for t_s in (0.0, 7.0):
        image = torch.zeros(1, 15, backbone.width)
        prompt.show(Visual.whole(image, [t_s], (3, 5), video=False))
    prompt.text("abc")
    config = backbone.config
    pads = [config.image_token_id] * 15
    start, end = config.vision_start_token_id, config.vision_end_token_id
    ids = torch.tensor([[1, 1, start, *pads, end, start, *pads, end, 1, 1, 1]])
    theirs, _ = backbone.model.model.get_rope_index(
        ids,
        mm_token_type_ids=(ids == config.image_token_id).int(),
        image_grid_thw=torch.tensor([[1, 6, 10]] * 2),
    )
    assert rows_of(backbone, prompt) == theirs[:, 0].tolist()


def test_video_of_qwen3_is_laid_out_as_in_the_library(tiny_qwen3: Backbone) -> None:
    model = tiny_qwen3
    times = [10.0, 11.0, 12.0, 13.0, 14.0]
    prompt = Prompt(model).text("ab").show(still(model, times, (3, 5))).text("abc")
    pads = [model.config.video_token_id] * 15
    ids = [1, 1]
    for seconds in ("10.5", "12.5", "14.0"):
        ids += model.tokenize(f"<{seconds} seconds>")
        ids += [model.config.vision_start_token_id, *pads, model.config.vision_end_token_id]
    row = torch.tensor([[*ids, 1, 1, 1]])
    theirs, _ = model.model.model.get_rope_index(
        row,
        mm_token_type_ids=2 * (row == model.config.video_token_id).int(),
        video_grid_thw=torch.tensor([[3, 6, 10]]),
    )
    assert rows_of(model, prompt) == theirs[:, 0].tolist()


def test_dropped_tokens_leave_the_others_where_they_were(tiny: Backbone) -> None:
    full = still(tiny, [float(i) for i in range(8)])
    keep = torch.tensor([17, 30, 50])  # nothing of the first grid
    some = Visual(
        full.tokens[keep],
        full.grids[keep],
        full.cells[keep],
        full.times_s,
        full.extent_s,
        full.lattice,
    )
    whole_rows = Prompt(tiny).text("ab").show(full).text("c").build().positions
    rows = Prompt(tiny).text("ab").show(some).text("c").build().positions
    assert torch.equal(rows[:, 3:6], whole_rows[:, 3 + keep])
    assert torch.equal(rows[:, -2:], whole_rows[:, -2:])


def test_a_grid_without_tokens_leaves_no_unit_in_qwen3(tiny_qwen3: Backbone) -> None:
    full = still(tiny_qwen3, [float(i) for i in range(6)])
    last = full.between(32, 48)
    alone = Prompt(tiny_qwen3).show(last).build()
    text = tiny_qwen3.tokenizer.decode(alone.text_ids.tolist())
    assert text == "<4.5 seconds><|vision_start|><|vision_end|>"


def test_turns_are_those_of_the_tokenizers_template(backbone: Backbone) -> None:
    said = [
        {"role": "system", "content": "You see."},
        {"role": "user", "content": "\n\nWhere is <|im_end|> the cup?\n"},
        {"role": "assistant", "content": "On the table."},
        {"role": "user", "content": "And now?"},
    ]
    prompt = Prompt(backbone)
    for message in said:
        prompt.turn(message["role"]).text(message["content"]).end()
    ids = prompt.turn("assistant").build().text_ids.tolist()
    written = backbone.tokenizer.apply_chat_template(
        [m | {"content": m["content"].replace("<|im_end|>", "@")} for m in said],
        add_generation_prompt=True,
        tokenize=False,
    )
    theirs = backbone.tokenizer.encode(written, add_special_tokens=False)
    # A control token that a user writes stays text: it closes no turn.
    mark = backbone.tokenize("@")
    where = theirs.index(mark[0])
    assert ids == theirs[:where] + backbone.tokenize("<|im_end|>") + theirs[where + 1 :]
    assert ids.count(backbone.token("<|im_end|>")) == 4


def test_visual_tokens_stand_where_the_template_has_them(tiny: Backbone) -> None:
    pictures = noise_frames(4, uneven(tiny))
    prompt = Prompt(tiny).turn("system").text(tiny.default_system).end()
    prompt = prompt.turn("user").show(whole(tiny, pictures)).text("What?").end()
    built = prompt.turn("assistant").build()
    parts = [{"type": "video"}, {"type": "text", "text": "What?"}]
    template = tiny.tokenizer.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True, tokenize=False
    )
    theirs = tiny.tokenizer.encode(template, add_special_tokens=False)
    where = theirs.index(tiny.token("<|video_pad|>"))
    assert built.text_ids.tolist() == theirs[:where] + theirs[where + 1 :]
    assert torch.equal(built.x[where : where + 30], tiny.encode(pictures).flatten(0, 1))


def test_text_is_kept_byte_for_byte(backbone: Backbone) -> None:
    for text in ('{"answer": "B"}', "smugglers' mug, 12:03 – ümlaut 鍵\n\n", " red  cup<|im_end|>"):
        assert backbone.tokenizer.decode(backbone.tokenize(text)) == text


def test_times_out_of_order_are_refused(backbone: Backbone) -> None:
    with pytest.raises(ValueError, match="in time order"):
        Prompt(backbone).show(still(backbone, [4.0, 5.0, 0.0, 1.0]))


def test_a_lone_last_frame_is_both_ends_of_its_grid() -> None:
    assert grid_times([0.0, 1.0, 2.0]) == ((0.0, 1.0), (2.0, 2.0))
    assert grid_times([0.0, 1.0]) == ((0.0, 1.0),)
