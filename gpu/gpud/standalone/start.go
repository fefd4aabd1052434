package standalone

import (
	"os/exec"
	"runtime"
)

// starts runs functions on one thread that lives as long as the process: the
// kernel sends a child its parent-death signal when the thread that created it
// ends, not when the process does.
var starts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for f := range starts {
			f()
		}
	}()
}

func start(cmd *exec.Cmd) error {
	result := make(chan error)
	starts <- func() { result <- cmd.Start() }
	return <-result
}
