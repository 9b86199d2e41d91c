from numba import cuda


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def run(x, y, out):
    stream = cuda.stream()
    add[32, 64, stream](cuda.to_device(x), cuda.to_device(y), out)
