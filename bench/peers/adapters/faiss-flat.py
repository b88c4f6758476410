"""faiss IndexFlatIP in one thread, speaking the protocol of host.mjs: one JSON object a line in, one out."""
import json
import os
import sys
import time

import faiss
import numpy

BATCH_ROWS = 10_000


def resident_bytes():
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


# Each way where it is the faster: by 1.15's own threshold 100 queries go without BLAS, ten times slower; with BLAS one query is three times slower.
WITHOUT_BLAS = 1 << 30
WITH_BLAS = 1


def main():
    faiss.omp_set_num_threads(1)
    index = queries = None

    def build(request):
        nonlocal index, queries
        rows, dimension = request["rows"], request["dimension"]
        before = resident_bytes()
        index = faiss.IndexFlatIP(dimension)
        elapsed = 0.0
        with open(request["path"], "rb") as file:
            for first in range(0, rows, BATCH_ROWS):
                count = min(BATCH_ROWS, rows - first)
                part = numpy.fromfile(file, numpy.float32, count * dimension).reshape(count, dimension)
                start = time.perf_counter()
                index.add(part)
                elapsed += time.perf_counter() - start
                del part
            after = resident_bytes()
            queries = numpy.fromfile(file, numpy.float32, request["queries"] * dimension).reshape(-1, dimension)
        memory = None if before is None else after - before
        return {"buildMs": elapsed * 1e3, "memoryBytes": memory, "batch": True, "versions": {"faiss-cpu": faiss.__version__}}

    def search(request):
        query = queries[request["query"] : request["query"] + 1]
        faiss.cvar.distance_compute_blas_threshold = WITHOUT_BLAS
        cpu = time.process_time()
        start = time.perf_counter()
        _, rows = index.search(query, request["k"])
        elapsed = time.perf_counter() - start
        cpu = time.process_time() - cpu
        return {"ms": elapsed * 1e3, "cpuMs": cpu * 1e3, "answer": {"rows": rows[0].tolist()}}

    def many(request):
        faiss.cvar.distance_compute_blas_threshold = WITH_BLAS
        cpu = time.process_time()
        start = time.perf_counter()
        _, rows = index.search(queries, request["k"])
        elapsed = time.perf_counter() - start
        cpu = time.process_time() - cpu
        return {"ms": elapsed * 1e3, "cpuMs": cpu * 1e3, "answers": [{"rows": row.tolist()} for row in rows]}

    operations = {"load": lambda request: {}, "build": build, "search": search, "many": many}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = operations[request["op"]](request)
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


main()
