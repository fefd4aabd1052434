package main

import "fmt"

// pathRows returns the rows for gpu/guest/bench's path.c: the cost of the path between a
// program and a device, measured with a device that completes everything at once. The goals are
// those of issue 17; a copy's goal is a share of memcpy's speed.
func pathRows() []row {
	rows := []row{}
	for _, c := range []struct {
		threads int
		goal    float64
	}{{1, 500}, {8, 700}} {
		rows = append(rows, row{
			name:  fmt.Sprintf("enqueue a launch, processor time, 10⁶ sustained, threads: %d", c.threads),
			bench: ns(fmt.Sprintf("PathEnqueueCPU/threads=%d", c.threads)), goal: c.goal,
			baselineName: "write the same bytes to memory, likewise", baseline: ns(fmt.Sprintf("PathEnqueueCPUBaseline/threads=%d", c.threads)),
		})
	}
	rows = append(rows,
		row{name: "launch and synchronize", bench: ns("PathLaunchSync"), baselineName: "two processes, ping-pong in shared memory", baseline: ns("PathLaunchSyncBaseline"), goalRatio: 3},
		row{name: "launch a graph of 1,000 kernels, processor time, worker busy", bench: ns("PathGraphLaunchCPU/worker=busy"), baselineName: "launch them one by one", baseline: ns("PathGraphLaunchCPUBaseline"), goal: 5000},
		row{name: "launch a graph of 1,000 kernels, processor time, worker asleep", bench: ns("PathGraphLaunchCPU/worker=asleep"), baselineName: "wake a process by an eventfd, likewise", baseline: ns("PathWakeCPUBaseline"), goal: 5000},
		row{name: "cuMemAlloc and cuMemFree, 1 MiB", bench: ns("PathAllocFree"), baselineName: "mmap and munmap, 1 MiB", baseline: ns("PathAllocFreeBaseline"), goal: 2000})
	for _, kind := range []struct {
		name  string
		share float64 // of memcpy's speed, the goal
	}{{"pageable", 0.80}, {"pinned", 0.95}} {
		for _, direction := range []string{"HtoD", "DtoH"} {
			for _, size := range []string{"64KiB", "256KiB", "1MiB", "16MiB"} {
				rows = append(rows, row{
					name:         fmt.Sprintf("copy %s, %s, %s", direction, kind.name, size),
					bench:        ns(fmt.Sprintf("PathCopy/%s/%s/size=%s", direction, kind.name, size)),
					baselineName: "memcpy", baseline: ns("PathMemcpy/size=" + size), goalRatio: 1 / kind.share,
				})
			}
		}
	}
	return append(rows, row{name: "load a module, 20 MiB of PTX", bench: ns("PathModuleLoad"), baselineName: "memcpy of it", baseline: ns("PathModuleLoadBaseline")})
}

// pathRowsInVM returns the same rows with the program in a VM. Its baselines are the VM's own.
// The goals do not apply to software emulation, so none is shown.
func pathRowsInVM() []row {
	rows := pathRows()
	for i := range rows {
		rows[i].bench.bench = "VM" + rows[i].bench.bench
		rows[i].baseline.bench = "VM" + rows[i].baseline.bench
		rows[i].goal, rows[i].goalRatio = 0, 0
	}
	return rows
}
