"""The workloads of `kagzi bench`: the same for every engine, so that figures can be compared.

W1   workflows of 10 sequential no-op steps, 100 (and 500) at a time; durable steps per second
W1r  the same with 3 to 17 steps each, so that runs are out of phase
W2   one workflow at a time, 100 sequential no-op steps; milliseconds a step
W3   idle system: start a 1-step workflow and await its result; milliseconds
W4   durable starts per second from one client, 50 in flight, no worker
W5   one workflow with 100 concurrent no-op steps; milliseconds
"""
