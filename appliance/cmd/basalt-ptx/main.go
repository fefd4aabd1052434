// Command basalt-ptx says which kernels of a program a soft GPU runs, and how.
//
//	basalt-ptx check [-json] FILE…
//	basalt-ptx show FILE [KERNEL]
//	basalt-ptx run [options] FILE KERNEL [ARGUMENT…]
//
// A file is PTX, a fatbin, a program or library (also an archive) with fatbins in it, or one
// of GCC's offloading (OpenACC, OpenMP) with the PTX of its kernels. The exit
// status is 0 when every kernel runs, 1 when a kernel or a module is refused, and 2
// when a file cannot be read or holds none of these.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage: basalt-ptx check [-json] FILE…
       basalt-ptx show FILE [KERNEL]
       basalt-ptx run [-grid X,Y,Z] [-block X,Y,Z] [-shared BYTES] [-model MODEL]
                      [-check memory,race,init] FILE KERNEL [ARGUMENT…]

check lists the kernels of PTX, of a fatbin, or of a program or library (also an
archive) with fatbins or the PTX of GCC's offloading in it, and says which of them a soft GPU refuses, with instruction and line.
show prints the kernels that it runs as its engine sees them: basic blocks,
registers and operations, and the line of PTX that each operation is of.
run runs a kernel on a soft GPU and prints its buffers. An argument is a number,
u32=7 (s8 to s64, u8 to u64, f32, f64), or a buffer, f32[256]=1,2,3, whose other
elements are zero. With -check, mistakes end the kernel: accesses outside of
memory (memory), shared memory that two threads use with nothing between (race) or
that nobody has written (init), with block, thread and line.
Exit status: 0 every kernel runs; 1 a kernel or a module is refused or fails; 2 a file
cannot be read.

`

// The exit statuses.
const (
	allRun  = 0
	refused = 1
	failed  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	switch {
	case len(args) > 0 && args[0] == "check":
		return runCheck(args, out, errs)
	case len(args) > 0 && args[0] == "show":
		return runShow(args[1:], out, errs)
	case len(args) > 0 && args[0] == "run":
		return runRun(args[1:], out, errs)
	}
	fmt.Fprint(errs, usage)
	return failed
}

func runCheck(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("basalt-ptx check", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage); flags.PrintDefaults() }
	asJSON := flags.Bool("json", false, "print one JSON document")
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return allRun
	case err != nil:
		return failed
	case flags.NArg() == 0:
		flags.Usage()
		return failed
	}
	status := allRun
	all := []Image{}
	for _, name := range flags.Args() {
		images, err := check(name)
		if err != nil {
			fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
			status = failed
			continue
		}
		for _, i := range images {
			if status == allRun && i.refuses() {
				status = refused
			}
		}
		all = append(all, images...)
	}
	if err := print(out, all, *asJSON); err != nil {
		fmt.Fprintf(errs, "basalt-ptx: %v\n", err)
		return failed
	}
	return status
}

func print(out io.Writer, all []Image, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Images []Image `json:"images"`
		}{all})
	}
	for _, i := range all {
		if _, err := io.WriteString(out, i.text()); err != nil {
			return err
		}
	}
	return nil
}
