"""A CUDA-only script, run unmodified inside the lane by the tests; prints what it saw as one JSON object."""

import json
import multiprocessing
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist


def refusal(attempt: Callable[[], object]) -> str:
    """Name and text of the error that an attempt raises."""
    try:
        attempt()
    except NotImplementedError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


class _MadeInBackward(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here on purpose
    """Places a tensor on the device while the gradient is computed, as Megatron-Core of 2024 does."""

    @staticmethod
    def forward(_ctx: object, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    @staticmethod
    def backward(_ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        return gradient + torch.ones(2, device=torch.cuda.current_device())


def stepped(*, is_by_group: bool) -> tuple[list[float], object, bool]:
    """A parameter after five steps with a reload in the middle, the group's step count, the state's."""
    from lossbisect.train.cpu_lane.adam import count_by_group

    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 5, device="cuda"))
    optimizer = torch.optim.AdamW([parameter], lr=0.1)
    if is_by_group:
        count_by_group(optimizer)
    for step in range(5):
        parameter.grad = torch.sin(parameter.detach() * (step + 1))
        optimizer.step()
        if step == 2:
            optimizer.load_state_dict(optimizer.state_dict())
    return parameter.tolist(), optimizer.param_groups[0].get("step"), "step" in optimizer.state[parameter]


def seen() -> dict[str, object]:
    """What a script on a GPU machine would ask and do."""
    facts: dict[str, object] = {"is_available": torch.cuda.is_available(), "devices": torch.cuda.device_count()}
    weight = torch.nn.Linear(4, 4).cuda().weight
    moved = torch.zeros(2).to("cuda:0")
    facts["is_cuda"] = [bool(tensor.is_cuda) for tensor in (weight, moved, torch.ones(2, device="cuda"), torch.ones(2))]
    facts["type"] = torch.ones(1, device=torch.cuda.current_device()).type()

    torch.manual_seed(1)
    before = torch.nn.functional.dropout(torch.ones(64, device="cuda"), 0.5)
    torch.manual_seed(1)
    torch.rand(100)  # host draws, as a data loader makes them
    torch.empty((), dtype=torch.int64).random_()
    after = torch.nn.functional.dropout(torch.ones(64, device="cuda"), 0.5)
    facts["dropout_ignores_host_draws"] = bool(torch.equal(before, after))

    torch.manual_seed(1)
    first = torch.rand(4)
    torch.manual_seed(1)
    torch.rand(7, device="cuda")
    facts["host_ignores_device_draws"] = bool(torch.equal(first, torch.rand(4)))

    state = torch.cuda.get_rng_state()
    drawn = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    facts["device_state_restores"] = bool(torch.equal(drawn, torch.rand(3, device="cuda")))

    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().synchronize()
    facts["histc"] = torch.histc(torch.tensor([0, 1, 1]), bins=2, min=0, max=1).tolist()
    facts["unsupported"] = [
        refusal(lambda: torch.cuda.CUDAGraph()),
        refusal(lambda: torch.cuda.memory_snapshot()),
        refusal(lambda: torch.zeros(2, dtype=torch.float8_e4m3fn, device="cuda")),
        refusal(lambda: torch.zeros(2, device="xpu")),
    ]
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(3, device="cuda"))])
    optimizer.param_groups[0]["params"][0].grad = torch.ones(3, device="cuda")
    optimizer.step()
    facts["steps"] = True
    leaf = torch.nn.Parameter(torch.zeros(2, device="cuda"))
    _MadeInBackward.apply(leaf).sum().backward()
    facts["made_in_backward"] = leaf.grad.tolist()
    facts["stepped"] = [stepped(is_by_group=False), stepped(is_by_group=True)]
    return facts


def reduced() -> dict[str, object]:
    """What two ranks agree on over NCCL."""
    dist.init_process_group(backend="nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    total = torch.tensor([float(rank + 1)], device="cuda")
    mean = total.clone()
    dist.all_reduce(total)
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    gathered = torch.zeros(2, device="cuda")
    dist.all_gather_into_tensor(gathered, torch.tensor([float(rank)], device="cuda"))
    part = torch.zeros(1, device="cuda")
    dist.reduce_scatter_tensor(part, torch.ones(2, device="cuda"))
    facts = {"sum": total.item(), "mean": mean.item(), "gathered": gathered.tolist(), "scattered": part.item()}
    dist.barrier()
    dist.destroy_process_group()
    return facts if rank == 0 else {}


def recorded() -> dict[str, object]:
    """Values as the trainers send them to TensorBoard."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(log_dir="anywhere", max_queue=1)
    writer.add_scalar("lm loss", torch.tensor(1 / 3), 1)
    writer.add_scalar("lm loss vs samples", 5.0, 8)
    writer.add_scalar("lm loss", float("nan"), 2)
    writer.add_text("args", "ignored", 1)
    writer.flush()
    return {}


IS_HIDDEN = "sklearn" in sys.modules and sys.modules["sklearn"] is None
"""Asked where this file is imported, so also in a process that was spawned: the lane lets no trainer import it."""


def told(queue: "multiprocessing.Queue[list[object]]") -> None:
    """What a spawned process sees."""
    queue.put([torch.cuda.device_count(), torch.ones(2, device="cuda").is_cuda, torch.get_num_threads(), IS_HIDDEN])


def spawned() -> dict[str, object]:
    """What a process sees that this one spawns, as the writer of a checkpoint does."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=told, args=(queue,))
    process.start()
    facts = {"spawned": queue.get(timeout=120)}
    process.join()
    return facts


if __name__ == "__main__":
    facts = {"seen": seen, "reduced": reduced, "recorded": recorded, "spawned": spawned}[sys.argv[1]]()
    if facts:
        print("FACTS " + json.dumps(facts))
