"""Peak of resident memory and time of training steps in ONNX Runtime, with and without a plan within a budget.

The peak is VmHWM after some steps in a fresh process, less VmHWM in front of the first; sessions are the default ones (the
CPU arena on, sequential execution, all optimizations). What a plan promises is the peak of the model's own order, views and
results in place included, less the peak of the plan. The two processes take steps in turn, never at the same time. Three ratios of times
are printed: of the fastest steps, which nobody else on the machine disturbed; the median, of what a step took in the one over what the
one beside it took in the other; the same of processor time. Ends with 1 if the fall of the peak over all steps is below 70 % of
what was promised, or the fastest step takes more than 1.3 times as long.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = 8
BATCHES = {"mlp_chain_64": 8192, "resnet18": 64, "unet": 32, "gpt_mini": 64}
AXES = {"gpt_mini": -1}  # of the classes; 1 for the others


def high_water():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024


def serve(path, batch):
    """Runs in a process of its own: for each line that it reads, takes a step and prints seconds and bytes."""
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    random, feed = np.random.default_rng(0), {}
    for value in session.get_inputs():
        shape = [d if isinstance(d, int) else batch for d in value.shape]
        if "int64" in value.type:
            feed[value.name] = random.integers(0, 3, shape)
        else:
            feed[value.name] = random.standard_normal(shape).astype(np.float32)
    before = high_water()
    for _ in sys.stdin:
        begin, cpu = time.perf_counter(), time.process_time()
        session.run(None, feed)
        print(json.dumps({"clock": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "peak": high_water() - before}), flush=True)


def measure(models, batch):
    """Returns the steps of each model."""
    workers = [subprocess.Popen([sys.executable, __file__, "--serve", m, str(batch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for m in models]
    steps = [[] for _ in models]
    for _ in range(STEPS):
        for worker, list in zip(workers, steps):
            worker.stdin.write("\n")
            worker.stdin.flush()
            list.append(json.loads(worker.stdout.readline()))
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    return steps


def slower(was, now, what):
    return statistics.median(n[what] / w[what] for w, n in zip(was[1:], now[1:]))


def fastest(steps):
    return min(s["clock"] for s in steps[1:])


def plan(gradtool, model, out, batch, *flags):
    report = out + ".json"
    subprocess.run([gradtool, "plan", "--dim", f"N={batch}", *flags, "--report", report, "-q", "-o", out, model], check=True)
    with open(report) as f:
        return json.load(f)


def main(gradtool, models, *rest):
    parts = next((r.split("=")[1] for r in rest if r.startswith("parts=")), None)
    rest = [r for r in rest if not r.startswith("parts=")]
    budget = next((r for r in rest if "=" not in r), "50%")
    chosen = dict(BATCHES)
    if any("=" in r for r in rest):
        chosen = {n: int(b) for n, b in (r.split("=") for r in rest if "=" in r)}
    mib, failed = 1 << 20, False
    print(f"budget {budget}, {'in ' + parts + ' parts of the batch' if parts else 'whole'}; MiB; first step, then the peak of {STEPS} steps")
    print(f"{'model':14} {'batch':>5} {'own':>6} {'order':>6} {'plan':>6} {'FLOPs':>7} {'promise':>7} | {'first':>11} {'peak':>11} {'fall':>6} {'of it':>6} {'best':>6} {'median':>6} {'cpu':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, batch in chosen.items():
            source = os.path.join(models, name, "model.onnx")
            if not os.path.exists(source):
                print(f"{name:14} not there")
                continue
            train, small = os.path.join(folder, "train.onnx"), os.path.join(folder, "small.onnx")
            grad = [gradtool, "grad", "-q", "--loss", f"softmax-cross-entropy,axis={AXES.get(name, 1)}", source, "-o", train + ".raw"]
            subprocess.run(grad, check=True)
            subprocess.run([gradtool, "prune", "-q", train + ".raw", "-o", train], check=True)
            order = plan(gradtool, train, os.path.join(folder, "order.onnx"), batch)
            own, within, given = order["own_peak_shared"], budget, train
            if parts:  # the share is one of the graph as it was
                given = os.path.join(folder, "parts.onnx")
                subprocess.run([gradtool, "fuse", "-q", "--chunk", "batch=" + parts, train, "-o", given + ".raw"], check=True)
                subprocess.run([gradtool, "prune", "-q", given + ".raw", "-o", given], check=True)
                if budget.endswith("%"):
                    within = str(int(own * float(budget[:-1]) / 100))
            try:
                less = plan(gradtool, given, small, batch, "--budget", within)
            except subprocess.CalledProcessError:
                failed = True
                continue
            promise = own - less["peak"]
            was, now = measure([train, small], batch)
            fall = was[-1]["peak"] - now[-1]["peak"]
            share, best = fall / max(promise, 1), fastest(now) / fastest(was)
            ok = share >= 0.7 and best <= 1.3
            failed |= not ok
            print(f"{name:14} {batch:5} {own / mib:6.0f} {order['peak'] / mib:6.0f} {less['peak'] / mib:6.0f} {less['flops_increase_percent']:+6.2f}% {promise / mib:7.0f} |"
                  f" {was[0]['peak'] / mib:5.0f}{now[0]['peak'] / mib:6.0f} {was[-1]['peak'] / mib:5.0f}{now[-1]['peak'] / mib:6.0f} {fall / mib:6.0f} {100 * share:5.0f}%"
                  f" {best:5.2f}x {slower(was, now, 'clock'):5.2f}x {slower(was, now, 'cpu'):5.2f}x {'ok' if ok else 'MISSED'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main(*sys.argv[1:]))
