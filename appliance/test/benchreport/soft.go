package main

// softKernel is a kernel of gpu/guest/bench/soft. Its name must not end in a dash and a number,
// because "go test" appends the number of processors in that form.
type softKernel struct {
	name string
	// divergent kernels have lanes that take different branches, or write to data-dependent
	// addresses.
	divergent bool
}

var softKernels = []softKernel{
	{name: "saxpy"}, {name: "sgemm512"}, {name: "sgemm1024"}, {name: "cublas512"}, {name: "reduction"}, {name: "scan"}, {name: "stencil"},
	{name: "nbody"}, {name: "softmax"}, {name: "attention"}, {name: "mersenne"},
	{name: "histogram", divergent: true}, {name: "radix-sort", divergent: true}, {name: "mandelbrot", divergent: true},
}

// softRows returns the rows that compare the soft GPU with C on the same processors. The goals
// are those of issue 18.
func softRows() []row {
	rows := []row{}
	for _, k := range softKernels {
		r := row{name: k.name, bench: ns("SoftKernel/" + k.name), baselineName: "C with OpenMP", baseline: ns("SoftKernelInC/" + k.name), goalRatio: 3}
		if k.divergent {
			r.name, r.goalRatio = k.name+", divergent", 10
		}
		byTime := r
		byTime.name += ", processor time"
		byTime.bench, byTime.baseline = ns("SoftKernelCPU/"+k.name), ns("SoftKernelCPUInC/"+k.name)
		rows = append(rows, r, byTime)
	}
	for _, engine := range []struct{ name, key string }{{"interpreter", "interpreted"}, {"machine code", "compiled"}} {
		for _, kernel := range []string{"saxpy", "matmul"} {
			rows = append(rows, row{
				name:  engine.name + ": lane-instructions by processor time, " + kernel,
				bench: key{"Kernels/" + engine.key + "/" + kernel, "Ginst/s"}, goalLeast: 1.5,
				baselineName: "the same loop in Go, same count", baseline: key{"KernelsInGo/" + kernel, "Ginst/s"},
			})
		}
	}
	return append(rows,
		row{name: "launch 32 threads, queued", bench: ns("SoftLaunch/queued"), baselineName: "a region of OpenMP", baseline: ns("SoftLaunchInC/region"), goal: 5000},
		row{name: "launch 32 threads, waited for", bench: ns("SoftLaunch/waited"), baselineName: "a region of OpenMP", baseline: ns("SoftLaunchInC/region"), goal: 5000},
		row{name: "load a module, 10 MB of PTX", bench: ns("ModuleLoad/lazy"), baselineName: "memcpy of it", baseline: ns("ModuleCopy"), goal: 1e9},
		row{name: "load a module, 10 MB of PTX, every kernel compiled", bench: ns("ModuleLoad/whole"), baselineName: "memcpy of it", baseline: ns("ModuleCopy"), goal: 1e9},
		row{name: "memory of the worker with 512 MiB in use", bench: key{"SoftMemory/worker", "MiB"}, baselineName: "what is in use", baseline: key{"SoftMemory/device", "MiB"}, goalRatio: 1.1})
}
