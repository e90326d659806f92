"""The workloads of `kagzi bench`: identical for every engine, so that figures can be compared.

W1   workflows of 10 sequential no-op steps, 100 (and 500) at a time; durable steps per second
W1r  the same with 3 to 17 steps each, so that runs are out of phase
W1b  the same with bodies of 20 ms, 500 at a time
W2   one workflow at a time, 100 sequential no-op steps; milliseconds a step
W3   idle system: start a 1-step workflow and await its result; milliseconds
W4   durable starts per second from one client, 50 in flight, no worker
W5   one workflow with 100 concurrent no-op steps; milliseconds
W6   10,000 runs asleep, all due at the same moment: how late the last one resumes; how late a single one
W7   a run of 10,000 steps, killed at its end and replayed on another worker: seconds of the replay
W8   at rest with 100,000 sleeping runs: CPU of all processes; how much they delay a pickup
"""
