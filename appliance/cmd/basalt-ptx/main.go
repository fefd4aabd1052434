// Command basalt-ptx reports which kernels of a program a soft GPU runs, and runs them.
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

FILE is PTX, a fatbin, or an executable, library or archive that contains fatbins or
the PTX of GCC's offloading.

check lists the kernels of each FILE. For a kernel that a soft GPU refuses it prints
the line, the instruction, and the rule of PTX that the instruction breaks or what of
it is not implemented.
show prints the compiled kernels: basic blocks, registers, operations, and the line of
PTX of each operation.
run runs a kernel on a soft GPU and prints the buffers afterwards. An ARGUMENT is a
number, e.g. u32=7 (types s8 to s64, u8 to u64, f32, f64), or a buffer, e.g.
f32[256]=1,2,3; elements without a value are zero. With -check, the kernel stops at the
first error, with block, thread and line: an access out of bounds (memory), a race of
two threads for shared memory (race), or a read of uninitialized shared memory (init).

Exit status: 0 if every kernel runs, 1 if a kernel or a module is refused or fails, 2 if
a file cannot be read.

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
