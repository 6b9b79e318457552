"""One replica, one iteration at a time, in plain Python: what the fast code must agree with."""

from collections import deque
from dataclasses import dataclass


@dataclass
class Request:
    born: float
    prompt: int
    output: int
    done: int = 0  # prompt tokens prefilled
    made: int = 0  # output tokens


class PlainReplica:
    def __init__(self, config, speed):
        self.config, self.speed, self.clock = config, speed, 0.0
        self.queue, self.batch, self.latencies = deque(), [], []

    def add(self, request):
        if len(self.queue) >= self.config.queue_limit:
            return
        if not self.queue and not self.batch:
            self.clock = max(self.clock, request.born)
        self.queue.append(request)

    def run(self, until):
        while self.clock < until and (self.queue or self.batch):
            self.iterate()

    def iterate(self):
        config = self.config
        prefilling = [r for r in self.batch if r.done < r.prompt]
        reserved = sum(r.prompt + r.output for r in self.batch)
        if not prefilling and self.queue and len(self.batch) < config.max_batch:
            head = self.queue[0]
            if reserved + head.prompt + head.output <= config.kv_capacity:
                self.batch.append(self.queue.popleft())
                prefilling = [head]
        decoding = [r for r in self.batch if r.done == r.prompt]
        cached = sum(r.done + r.made for r in self.batch)
        assert cached <= config.kv_capacity
        chunk = min(prefilling[0].prompt - prefilling[0].done, config.chunk) if prefilling else 0
        cost = config.iteration_cost + config.prefill_cost * chunk
        cost += config.decode_cost * len(decoding) + config.cache_cost * cached
        self.clock += cost / self.speed
        for request in prefilling:
            request.done += chunk
        for request in decoding:
            request.made += 1
        self.latencies += [self.clock - r.born for r in decoding if r.made == r.output]
        self.batch = [r for r in self.batch if r.made < r.output]
