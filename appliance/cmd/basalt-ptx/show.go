package main

import (
	"fmt"
	"io"

	"github.com/basalt-gpu/basalt/gpu/soft/compile"
)

// runShow prints the programs of all kernels of a file, or of one of them.
func runShow(args []string, out, errs io.Writer) int {
	if len(args) < 1 || len(args) > 2 || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(errs, usage)
		return failed
	}
	name, kernel := args[0], ""
	if len(args) == 2 {
		kernel = args[1]
	}
	images, err := readImages(name)
	if err != nil {
		fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
		return failed
	}
	status, found := allRun, false
	for _, b := range images {
		kernels, err := compile.DefaultCapability.Check(b)
		if err != nil {
			fmt.Fprintf(errs, "basalt-ptx: %s: %v\n", name, err)
			status = refused
		}
		for _, k := range kernels {
			if kernel != "" && k.Name != kernel {
				continue
			}
			found = true
			switch {
			case k.Err != nil:
				fmt.Fprintf(errs, "basalt-ptx: %s: kernel %s: %v\n", name, k.Name, k.Err)
				status = refused
			default:
				if err := k.Program.WriteText(out); err != nil {
					fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
					return failed
				}
			}
		}
	}
	if kernel != "" && !found && status == allRun {
		fmt.Fprintf(errs, "basalt-ptx: %s has no kernel %s: list its kernels with basalt-ptx check\n", name, kernel)
		return failed
	}
	return status
}
