"""Post 002, grouped convolution and einsum in place of FC layers (about 2019), run line by line."""

import math
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn
from verdict import verdict

import vgpu
from course.kit import post_002
from frcnn_lite import layers

POSTS = Path(__file__).resolve().parents[1]
GROUPED, EINSUM = "24_grouped_convolution", "25_einsum_instead_of_many_fc_layers"
EIGHTY = "26_eighty_small_layers"
SIZES = (7,) * 8 + (6,) * 4  # 12 groups, 80 classes


@pytest.fixture(scope="module")
def bottlenecks():
    return runpy.run_path(str(POSTS / "002_bottlenecks.py"))


@pytest.fixture(scope="module")
def linears():
    return runpy.run_path(str(POSTS / "002_group_linear.py"))


@verdict(
    "002",
    "1.1",
    claim="`groups` must divide in_channels and out_channels; each group makes out_channels / groups channels.",
    ruling="right",
    because="torch refuses anything else by name, and the weight holds in_channels / groups input channels.",
    notebook=GROUPED,
    words="divide both numbers of channels",
)
def test_groups_divide_both():
    assert nn.Conv2d(6, 12, 3, groups=3).weight.shape == (12, 2, 3, 3)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.Conv2d(10, 12, 1, groups=3)
    with pytest.raises(ValueError, match="out_channels must be divisible by groups"):
        nn.Conv2d(12, 10, 1, groups=3)


@verdict(
    "002",
    "1.2 and 2.3",
    claim="Twelve serial bottlenecks become one block whose convolutions have groups = 12.",
    ruling="right",
    because="With the weights laid end to end the post's grouped block gives the loop's outputs, in training too.",
    notebook=GROUPED,
    words="the packed tensor is their concatenation",
)
def test_the_posts_blocks_are_equal_with_packed_weights(bottlenecks):
    serial = [bottlenecks["Parallel_AttentionBottleneck"](16, 8).double() for _ in range(12)]
    grouped = bottlenecks["Parallel_Bottleneck"](12, 16).double()
    x = torch.randn(3, 16, 5, 5, dtype=torch.float64)
    grouped.load_state_dict(layers.pack_state_dicts([block.state_dict() for block in serial]))
    loop = torch.cat([block(x) for block in serial], dim=1)
    torch.testing.assert_close(grouped(x), loop, rtol=1e-10, atol=1e-10)


@verdict(
    "002",
    "1.2, conv1",
    claim="The first convolution, 512 to 12 x 256, has no `groups`.",
    ruling="right",
    because="Every branch reads all 512 channels. Grouping it raises besides: 512 is not divisible by 12.",
    notebook=GROUPED,
    words="leaves `conv1` ungrouped",
)
def test_the_first_convolution_stays_ungrouped():
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.Conv2d(512, 12 * 256, kernel_size=1, groups=12)
    assert post_002.Bottleneck(post_002.BottleneckConfig(512, 256, 512), groups=12).conv1.groups == 1


@verdict(
    "002",
    "1.2, conv2 and conv3",
    claim="`groups=12` inside a class that takes `groups` as an argument.",
    ruling="incomplete",
    because="Right for the post's 12 groups. With 6 groups a filter sees half of its branch, with 24 two "
    "branches, and nothing raises; 5 raises.",
    notebook=GROUPED,
    words="Five raises, by luck",
)
def test_twelve_is_hard_coded(bottlenecks):
    block = bottlenecks["Parallel_Bottleneck"]
    assert [block(groups, 64).conv2.weight.shape[1] for groups in (6, 12, 24)] == [16, 32, 64]
    with pytest.raises(ValueError, match="divisible"):
        block(5, 64)


@verdict(
    "002",
    "1.2 and 2.3",
    claim="`expansion = 4` on the class, `expand = 2 # fixme` in the constructor.",
    ruling="incomplete",
    because="The class constant is never read; the blocks widen by 2. The number belongs to the configuration.",
    notebook=GROUPED,
    words="the class constant is never used",
)
def test_expansion_is_never_read(bottlenecks):
    block = bottlenecks["Parallel_AttentionBottleneck"](16, 8)
    assert type(block).expansion == 4
    assert block.conv3.out_channels == 2 * 8


@verdict(
    "002",
    "1.2, forward",
    claim="The shortcut is repeated for the groups with `cat`, grown in a loop or all twelve at once.",
    ruling="right",
    because="The values are right for any number of groups. Twelve copies are stored, and the loop copies 77 times x on its way. Broadcasting "
    "adds the same without a copy.",
    notebook=GROUPED,
    words="right values, 12 copies",
)
def test_shortcut_by_cat_equals_broadcast():
    x, out = torch.randn(2, 3, 4, 4), torch.randn(2, 36, 4, 4)
    grown = x
    for _ in range(11):
        grown = torch.cat((grown, x), dim=1)
    broadcast = (out.unflatten(1, (12, -1)) + x.unsqueeze(1)).flatten(1, 2)
    assert torch.equal(out + grown, out + torch.cat([x] * 12, dim=1))
    assert torch.equal(out + grown, broadcast)
    assert sum(range(2, 13)) == 77


@verdict(
    "002",
    "2.4",
    claim="`stack` makes a new dimension and does not serve here; `cat` is.",
    ruling="right",
    because="(B, 12, C, H, W) does not add to (B, 12 * C, H, W). Flattened into the channels it equals `cat`.",
    notebook=GROUPED,
    words="flattened into the channels it is equal",
)
def test_stack_makes_a_new_dimension():
    x = torch.randn(2, 3, 4, 4)
    stacked = torch.stack([x] * 12, dim=1)
    assert stacked.shape == (2, 12, 3, 4, 4)
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.zeros(2, 36, 4, 4) + stacked
    assert torch.equal(stacked.flatten(1, 2), torch.cat([x] * 12, dim=1))


@verdict(
    "002",
    "1.2 and 2.4",
    claim="`torch.repeat` joins several copies of one tensor.",
    ruling="typo",
    because="There is only `Tensor.repeat`, which does. `torch.repeat_interleave` orders the channels otherwise.",
    notebook=GROUPED,
    words="torch.repeat exists",
)
def test_repeat_is_a_method():
    x = torch.arange(6.0).view(1, 3, 1, 2)
    assert not hasattr(torch, "repeat")
    assert torch.equal(x.repeat(1, 12, 1, 1), torch.cat([x] * 12, dim=1))
    assert not torch.equal(x.repeat_interleave(12, dim=1), torch.cat([x] * 12, dim=1))


@verdict(
    "002",
    "1.2, forward",
    claim="`residual = self.downsample(x)` where a downsample branch is given.",
    ruling="incomplete",
    because="As in ResNet it replaces the shortcut, here all twelve, so it has to give 12 times the "
    "channels, and then it works. A branch made for the serial block gives a twelfth of them, which "
    "raises.",
    notebook=GROUPED,
    words="replaces all twelve shortcuts",
)
def test_downsample_discards_the_cat(bottlenecks):
    serial = bottlenecks["Parallel_AttentionBottleneck"](16, 8, downsample=nn.Conv2d(16, 16, 1))
    grouped = bottlenecks["Parallel_Bottleneck"](12, 16, downsample=serial.downsample)
    x = torch.randn(2, 16, 5, 5)
    assert serial(x).shape == (2, 16, 5, 5)
    with pytest.raises(RuntimeError, match="must match the size"):
        grouped(x)
    wide = bottlenecks["Parallel_Bottleneck"](12, 16, downsample=nn.Conv2d(16, 12 * 16, 1))
    assert wide(x).shape == (2, 12 * 16, 5, 5)


@verdict(
    "002",
    "1.2 and 2.3, comments",
    claim="`ca` and `sa`, channel and spatial attention, are commented out in both blocks.",
    ruling="incomplete",
    because="Both can be grouped: twelve pairs of 1x1 filters, and a mean and a maximum map for each group.",
    notebook=GROUPED,
    words="both attention layers can be grouped",
)
def test_attention_can_be_grouped():
    config = post_002.BottleneckConfig(8, 4, 8)
    blocks = [post_002.AttentionBottleneck(config, reduction=2).double() for _ in range(12)]
    grouped = layers.pack_serial_blocks(blocks, post_002.AttentionBottleneck(config, groups=12, reduction=2))
    x = torch.randn(2, 8, 6, 6, dtype=torch.float64)
    loop = torch.cat([block(x) for block in blocks], dim=1)
    torch.testing.assert_close(grouped(x), loop, rtol=1e-10, atol=1e-10)


@verdict(
    "002",
    "2.1 and 2.2",
    claim="2048 channels are reduced to 512, each branch is pooled: twelve tensors (B, 512).",
    ruling="right",
    because="The whole chain, with loops and without, gives (B, 12, 512) and the same numbers.",
    notebook=GROUPED,
    words="(B, 12, 512), with loops and without",
)
def test_the_whole_chain():
    serial = post_002.SerialGroupFeatures(64, groups=12, group_channels=16).double()
    x = torch.randn(2, 64, 14, 14, dtype=torch.float64)
    pooled = post_002.GroupFeatures.from_serial(serial)(x)
    assert pooled.shape == (2, 12, 16)
    torch.testing.assert_close(pooled, serial(x), rtol=1e-10, atol=1e-10)
    with torch.device("meta"):
        assert post_002.GroupFeatures(2048, 12, 512)(torch.zeros(1, 2048, 14, 14)).shape == (1, 12, 512)


@verdict(
    "002",
    "3.1",
    claim="AdaptiveMaxPool2d(1) is global max pooling; (None, 7) keeps the height; `return_indices` gives places.",
    ruling="right",
    because="Shapes and values are as the documentation it quotes says; places are counted row by row.",
    notebook=GROUPED,
    words="AdaptiveMaxPool",
)
def test_adaptive_max_pooling():
    x = torch.randn(2, 5, 10, 9)
    assert torch.equal(nn.AdaptiveMaxPool2d(1)(x).flatten(1), x.amax(dim=(2, 3)))
    assert nn.AdaptiveMaxPool2d((None, 7))(x).shape == (2, 5, 10, 7)
    values, places = nn.AdaptiveMaxPool2d(1, return_indices=True)(x)
    assert torch.equal(x.flatten(2).gather(2, places.flatten(2)), values.flatten(2))


@verdict(
    "002",
    "3.2",
    claim="`view` keeps row-major order, so the pooled channels read group 0, group 1, ...",
    ruling="right",
    because="(B, 12 * C, 1, 1) viewed as (B, 12, C) has channel k * C + c at [k, c].",
    notebook=GROUPED,
    words="`view` keeps row-major order",
)
def test_view_is_row_major():
    assert torch.arange(1, 17).view(2, 2, 4)[1, 0].tolist() == [9, 10, 11, 12]
    pooled = torch.arange(24.0).view(1, 24, 1, 1)
    assert torch.equal(pooled.view(1, 12, 2)[0, 5], torch.tensor([10.0, 11.0]))


@verdict(
    "002",
    "7",
    claim="BatchNorm's size: links only.",
    ruling="incomplete",
    because="It is groups * channels. Statistics are per channel, so each group's come out as its own block's.",
    notebook=GROUPED,
    words="every BatchNorm vector and every running statistic",
)
def test_batchnorm_of_all_channels_is_batchnorm_of_each_group():
    x = torch.randn(4, 12 * 5, 3, 3, dtype=torch.float64)
    together, each = nn.BatchNorm2d(60).double(), [nn.BatchNorm2d(5).double() for _ in range(12)]
    parts = torch.cat([norm(part) for norm, part in zip(each, x.chunk(12, dim=1), strict=True)], dim=1)
    torch.testing.assert_close(together(x), parts, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(together.running_var, torch.cat([norm.running_var for norm in each]))


@verdict(
    "002",
    "4.1, `torch.modulist`",
    claim="The FC layers are kept in a `torch.modulist`.",
    ruling="typo",
    because="`torch.nn.ModuleList` is meant, and the listing below has it. A plain list would hide the layers' weights "
    "from `parameters()`.",
)
def test_module_list_is_in_nn():
    assert not hasattr(torch, "modulist") and len([*nn.ModuleList([nn.Linear(2, 1)]).parameters()]) == 2


@verdict(
    "002",
    "4.1",
    claim="The serial head: one Linear a class in ragged groups, `gat`, a residual block and a score a class.",
    ruling="incomplete",
    because="`gat` and `ResidualLinearBlock` are not shown; completed from the paper and the argument names, the head "
    "runs, and equals the one without loops.",
    notebook=EIGHTY,
    words="ResidualLinearBlock",
)
def test_the_serial_head_and_its_replacement():
    serial = post_002.SerialClassHead(post_002.ClassHeadConfig((3, 0, 5), 8, 4)).double()
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    assert serial(x).shape == (2, 8)
    torch.testing.assert_close(post_002.ClassHead.from_serial(serial)(x), serial(x), rtol=1e-10, atol=1e-10)


@verdict(
    "002",
    "4.2",
    claim="A dense layer has (Cg * groups) * (Cc * classes) weights; all groups Cg * Cc * classes (+ Cc * classes).",
    ruling="right",
    because="The parameters of the layers count up to the formulas.",
    notebook=EIGHTY,
    words="the post's count",
)
def test_parameter_counts():
    layer = layers.GroupLinear(12, SIZES, 512, 64)
    dense = nn.Linear(512 * 12, 64 * 80, device="meta")
    assert layer.weight.numel() == sum(512 * 64 * n for n in SIZES) == 512 * 64 * 80
    assert layer.bias.numel() == 64 * 80
    assert dense.weight.numel() == (512 * 12) * (64 * 80)


@verdict(
    "002",
    "4.4",
    claim="The bound of the initial weights is 1 / sqrt(weight.size(1)).",
    ruling="wrong",
    because="Size 1 is the number of classes, and 512 numbers are summed: at 80 classes the outputs are 2.5 times those "
    "of nn.Linear's rule. (With the weight of 4.3 the bound would be too small.)",
    notebook=EIGHTY,
    words="`weight.size(1)`",
)
def test_size_1_is_not_the_fan_in(linears):
    layer = linears["Parallel_GroupLinear"](12, 80, 512, 64, SIZES)
    assert layer.weight.size(1) == 80
    assert layer.weight.abs().max() > 0.99 / math.sqrt(80) > 2.4 / math.sqrt(512)
    ours = layers.GroupLinear(12, SIZES, 512, 64)
    assert ours.weight.abs().max() <= 1 / math.sqrt(512)


@verdict(
    "002",
    "4.3, then 4.4",
    claim="weight (group_channels, class_channels * n_classes), then (group_channels, n_classes, class_channels).",
    ruling="incomplete",
    because="The flat weight does not say which comes first. As it is written, class channels before classes, a view "
    "of one is not the other, unless there is one class or one channel.",
    notebook=EIGHTY,
    words="two layouts of one layer",
)
def test_two_layouts_are_not_views_of_each_other():
    by_channel = torch.arange(24).view(2, 3, 4)  # (group_channels, class_channels, n_classes)
    by_class = by_channel.transpose(1, 2)
    assert not torch.equal(by_channel.reshape(2, 4, 3), by_class)


@verdict(
    "002",
    "4.3 and 4.4",
    claim="bias (class_channels, n_classes).",
    ruling="wrong",
    because="The output is (B, n_classes, class_channels): it raises, except with as many classes as channels, where "
    "it would be added transposed, and with one class or one channel, where the output silently grows. The forward "
    "never adds it.",
    notebook=EIGHTY,
    words="the other way round, and never added",
)
def test_bias_lies_the_other_way_round(linears):
    layer = linears["Parallel_GroupLinear"](1, 5, 8, 3, (5,))
    assert layer.bias.shape == (3, 5)
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.zeros(2, 5, 3) + layer.bias
    assert (torch.zeros(2, 5, 1) + torch.zeros(1, 5)).shape == (2, 5, 5)
    square = torch.arange(4.0).view(2, 2)
    assert not torch.equal(torch.zeros(1, 2, 2) + square, torch.zeros(1, 2, 2) + square.T)
    assert (
        "self.bias" not in (POSTS / "002_group_linear.py").read_text("utf-8").split("def forward")[1].split("class ")[0]
    )


@verdict(
    "002",
    "4.4, forward",
    claim="The forward ends in `output = torch.einsum(...)`.",
    ruling="typo",
    because="The `return` is missing: the layer gives None.",
    notebook=EIGHTY,
    words="without `return`",
)
def test_forward_returns_nothing(linears):
    assert linears["Parallel_GroupLinear"](1, 4, 4, 3, (4,))(torch.randn(1, 1, 4)) is None


@verdict(
    "002",
    "4.4, forward",
    claim="`torch.Tensor(n, 0, c)` starts a buffer that grows by `cat`.",
    ruling="wrong",
    because="It lies on the CPU: with an input on a GPU the first `cat` raises.",
    notebook=EIGHTY,
    words="where the post starts: no device given",
)
def test_the_buffer_is_a_cpu_tensor():
    with vgpu.virtual_gpus(1), pytest.raises(RuntimeError, match="same device"):
        torch.cat((torch.Tensor(2, 0, 4), torch.zeros(2, 1, 4, device="cuda")), dim=1)


@verdict(
    "002",
    "4.4, forward",
    claim="`einsum('gik,gkj->gij', groups_input, weight)` with (B, classes, Cg) and (Cg, classes, Cc).",
    ruling="wrong",
    because="`g` ties the batch to the channels: it raises on these shapes. Where sizes agree it is silently wrong: "
    "(1, 64, 64) and (64, 64, 16) give a batch of 64. Right for this weight is `bni,ino->bno`.",
    notebook=EINSUM,
    words="gik,gkj->gij",
)
def test_the_equation_ties_batch_to_channels(linears):
    layer = linears["Parallel_GroupLinear"](12, 80, 512, 64, SIZES)
    with pytest.raises(RuntimeError, match="does not broadcast"):
        layer(torch.randn(2, 12, 512))
    assert torch.einsum("gik,gkj->gij", torch.randn(1, 64, 64), torch.randn(64, 64, 16)).shape == (64, 64, 16)
    x, weight = torch.randn(64, 64, 64, dtype=torch.float64), torch.randn(64, 64, 16, dtype=torch.float64)
    right = torch.einsum("bni,ino->bno", x, weight)
    wrong = torch.einsum("gik,gkj->gij", x, weight)
    assert wrong.shape == right.shape
    assert not torch.allclose(wrong, right)


@verdict(
    "002",
    "4.5",
    claim="Operands without brackets run in the editor and raise on the server; they should be a list.",
    ruling="right then",
    because="Both forms run today, and the post prints the same line twice. Before torch 1.0 only a list was accepted "
    "(pytorch issue 9929, 2018).",
    notebook=EINSUM,
    words="operands with or without a list",
)
def test_operands_as_a_list_or_one_by_one():
    a, b = torch.randn(2, 3, 4), torch.randn(3, 4, 5)
    assert torch.equal(torch.einsum("bgi,gio->bgo", [a, b]), torch.einsum("bgi,gio->bgo", a, b))


@verdict(
    "002",
    "5",
    claim="The model is run in parallel with `torch.nn.parallel.data_parallel`.",
    ruling="right",
    because="It still exists; loop-free layers give the same on two devices as on one.",
    notebook=GROUPED,
    words="DataParallel(module.cuda()",
)
def test_data_parallel_runs_the_grouped_layers():
    net = post_002.GroupFeatures(8, groups=3, group_channels=4).eval()
    x = torch.randn(4, 8, 5, 5)
    expected = net(x).detach()
    with vgpu.virtual_gpus(2):
        out = nn.parallel.data_parallel(net.cuda(), x.cuda(), device_ids=[0, 1])
        torch.testing.assert_close(out.detach().cpu(), expected, rtol=1e-5, atol=1e-5)


@verdict(
    "002",
    "6.1",
    claim="Conv1d(in, out, kernel_size=in // fc_groups, groups=fc_groups) is not feasible for a grouped FC.",
    ruling="right",
    because="The kernel would span 256 positions: 671,088,640 weights (2.68 GB) for a layer of 2,621,440.",
    notebook=EINSUM,
    words="kernel_size=20480 // 80",
)
def test_kernel_size_counts_positions():
    conv = nn.Conv1d(20480, 10240, kernel_size=20480 // 80, bias=False, groups=80, device="meta")
    assert conv.weight.numel() == 671_088_640 == 256 * 2_621_440
    assert layers.GroupLinear(80, (1,) * 80, 256, 128, bias=False).weight.numel() == 2_621_440


@verdict(
    "002",
    "6.1",
    claim='"Expected 3-dimensional input for 3-dimensional weight 10240 256, but got 2-dimensional input".',
    ruling="right then",
    because="A 2-dimensional input is one example without a batch today, so the error names the channels.",
    notebook=EINSUM,
    words="Expected 3-dimensional input",
)
def test_the_error_has_changed():
    with pytest.raises(RuntimeError, match=r"expected input\[1, 2, 20\] to have 20 channels, but got 2 channels"):
        nn.Conv1d(20, 20, kernel_size=4, bias=False, groups=5)(torch.zeros(2, 20))


@verdict(
    "002",
    "6.1",
    claim="A grouped FC by Conv1d is not possible.",
    ruling="incomplete",
    because="Not with the kernel size tried. With kernel_size=1 and an axis of length one, (B, C, 1), it "
    "equals the list of Linears.",
    notebook=EINSUM,
    words="kernel_size=1, bias=False, groups=80",
)
def test_conv1d_with_kernel_size_1_works():
    linears = nn.ModuleList(nn.Linear(4, 3, bias=False) for _ in range(5)).double()
    conv = nn.Conv1d(20, 15, kernel_size=1, bias=False, groups=5).double()
    conv.load_state_dict({"weight": torch.cat([linear.weight for linear in linears]).unsqueeze(2)})
    x = torch.randn(2, 20, dtype=torch.float64)
    loop = torch.cat([linear(part) for linear, part in zip(linears, x.chunk(5, dim=1), strict=True)], dim=1)
    torch.testing.assert_close(conv(x.unsqueeze(2)).squeeze(2), loop, rtol=1e-10, atol=1e-10)


@verdict(
    "002",
    "6.2",
    claim="`group_divided_linear`: weight (groups, in, out), `'bgi,gio->bgo'`.",
    ruling="incomplete",
    because="The equation is right; the class ends before `forward` and `reset_parameters`, and cannot be built.",
    notebook=EINSUM,
    words="the class ends before its forward",
)
def test_group_divided_linear_is_a_fragment(linears):
    with pytest.raises(AttributeError, match="reset_parameters"):
        linears["group_divided_linear"](3, 4, 5)
    layer = layers.GroupLinear(3, (1, 1, 1), 4, 5).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    expected = torch.einsum("bgi,gio->bgo", x, layer.weight.mT) + layer.bias
    torch.testing.assert_close(layer(x), expected, rtol=1e-10, atol=1e-10)
