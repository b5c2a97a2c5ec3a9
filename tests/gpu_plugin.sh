#!/bin/sh
# A CUDA plug-in of its own, built with nvcc and the two public headers, run over two cases of tiny
# with counters: its launches carry its phases, its output is right.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    /' .out .err 2>/dev/null | head -20
}

cat >plain.cu <<'END'
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/kernel.h"

// One block a token. h of each slot in shared memory, then the weighted sum.
static __global__ void expert_token(moe_shape s, const __half *x, const int64_t *ids,
                                    const __half *weights, const __half *gate, const __half *up,
                                    const __half *down, __half *out) {
    extern __shared__ __half h[]; // [K, I]
    const int64_t t = blockIdx.x, H = s.hidden_size, I = s.moe_intermediate_size,
                  K = s.num_experts_per_tok;
    for (int64_t n = threadIdx.x; n < K * I; n += blockDim.x) {
        const int64_t e = ids[t * K + n / I], row = (e * I + n % I) * H;
        float g = 0, u = 0;
        if (e < 0 || e >= s.num_experts)
            continue;
        for (int64_t c = 0; c < H; c++) {
            g += __half2float(x[t * H + c]) * __half2float(gate[row + c]);
            u += __half2float(x[t * H + c]) * __half2float(up[row + c]);
        }
        g = __half2float(__float2half(g));
        const float silu = __half2float(__float2half(g / (1.0f + expf(-g))));
        h[n] = __float2half(silu * __half2float(__float2half(u)));
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < H; c += blockDim.x) {
        float sum = 0;
        for (int64_t k = 0; k < K; k++) {
            const int64_t e = ids[t * K + k], row = (e * H + c) * I;
            float y = 0;
            if (e < 0 || e >= s.num_experts)
                continue;
            for (int64_t i = 0; i < I; i++)
                y += __half2float(h[k * I + i]) * __half2float(down[row + i]);
            sum += __half2float(__float2half(__half2float(__float2half(y)) *
                                             __half2float(weights[t * K + k])));
        }
        out[t * H + c] = __float2half(sum);
    }
}

static bool supports(const moe_shape *shape, const moe_device *, char *reason) {
    if (shape->num_experts_per_tok * shape->moe_intermediate_size * 2 <= 16 * 1024)
        return true;
    snprintf(reason, MOE_REASON_BYTES, "more than 16 KiB of shared memory are needed");
    return false;
}

static size_t workspace_bytes(const moe_shape *, const moe_device *) { return 0; }

static int run(void *, const moe_call *call, char *reason) {
    const moe_shape s = call->shape;
    moe_phase_push(call, "gate_up+swiglu+down+combine");
    expert_token<<<(unsigned)s.batch_seq_len, 256,
                   (size_t)(2 * s.num_experts_per_tok * s.moe_intermediate_size),
                   (cudaStream_t)call->stream>>>(
        s, (const __half *)call->hidden_states, call->topk_idx, (const __half *)call->topk_weight,
        (const __half *)call->expert_gate_projs, (const __half *)call->expert_up_projs,
        (const __half *)call->expert_down_projs, (__half *)call->output);
    moe_phase_pop(call);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess)
        snprintf(reason, MOE_REASON_BYTES, "%s", cudaGetErrorString(status));
    return status != cudaSuccess;
}

static const moe_kernel plain = {MOE_KERNEL_ABI, MOE_CUDA, "plain-plugin", "one block a token",
                                 "moesol developers", "MIT", "tests/gpu_plugin.sh", "fp16", true,
                                 false, supports, workspace_bytes, nullptr, run, nullptr, nullptr};
const moe_kernel *const moe_plugin_kernels[] = {&plain, nullptr};
END
mkdir -p headers/kernels headers/cases
cp "$top/kernels/kernel.h" headers/kernels
cp "$top/cases/case.h" headers/cases
if "$nvcc" -std=c++17 -O3 -arch="${MOESOL_TEST_ARCH:-native}" -Xcompiler -fPIC -shared -Iheaders -o plain.so plain.cu \
    >.out 2>.err; then ok; else bad "plain.cu does not compile"; fi
if [ -n "${MOESOL_TEST_ARCH:-}" ]; then # only whether it compiles, where no GPU is
    echo "$passed passed, $failed failed"
    exit $failed
fi

"$moesol" run tiny -d cuda -k ./plain.so -c 1-2 -r 1 -o records >.out 2>.err
code=$?
record=$(cat .out)
if [ $code = 0 ] && [ -s "$record" ]; then ok; else bad "run: exit code $code"; fi
if [ "$(grep -c '"type":"case".*"status":"\(ok\|noisy\)".*"name":"gate_up+swiglu+down+combine"' "$record")" = 2 ]
then ok; else bad "not two good cases with the plug-in's phase"; fi
if grep -q '"source_hash":"'"$(sha256sum <plain.so | cut -d' ' -f1)"'".*"plugin":true' "$record"; then ok; else
    bad "the record has not the plug-in's hash"
fi
if grep -q '"type":"counters".*"gate_up+swiglu+down+combine"' "$record" ||
    grep -q '"type":"counters".*"reason"' "$record"; then ok; else bad "no counters and no reason"; fi
"$moesol" run moe-token-repeat -d cuda -k ./plain.so -c 1 -r 1 -o large >.out 2>.err
if grep -q 'unsupported: more than 16 KiB of shared memory' .err; then ok; else
    bad "the refusal of a shape is not told"
fi
"$moesol" run tiny -d cpu -k ./plain.so -o cpu >.out 2>.err
code=$?
if [ $code = 2 ] && grep -q 'has no kernel for cpu; add --device cuda' .err; then ok; else bad "on the CPU: $code"; fi
cat >crash.cu <<'END'
#include <cstdlib>
__attribute__((constructor)) static void crash() { abort(); }
END
"$nvcc" -arch=native -Xcompiler -fPIC -shared -o crash.so crash.cu 2>.err
"$moesol" run tiny -d cuda -k ./crash.so -o crash >.out 2>.err
code=$?
if [ $code = 1 ] && grep -q 'crash.so: its worker failed while loading it: killed by SIGABRT' .err; then ok; else
    bad "a plug-in that aborts: $code"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
