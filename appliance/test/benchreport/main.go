// Command benchreport prints one table of the benchmark samples on its standard input, in the
// format of "go test -bench". It fails if a row of the table has no sample, so that nothing is
// omitted silently. It is called by installer/dev/bench.sh.
//
//	benchreport         the table, of samples on standard input
//	benchreport path    the table of the path to a GPU (bench-gpu-path.sh)
//	benchreport path-vm the same with the program in a VM
//	benchreport soft    the table of the soft GPU beside C (bench-soft.sh)
//	benchreport busy    one sample of how busy the machine is now
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 && args[0] == "busy" {
		share, err := busy(2 * time.Second)
		if err == nil {
			fmt.Printf("Benchmark%s\t1\t%.0f %%\n", busyRow, 100*share)
		}
		return err
	}
	tables := map[string][]row{"": rows, "path": pathRows(), "path-vm": pathRowsInVM(), "soft": softRows()}
	table, known := tables[strings.Join(args, " ")]
	if !known {
		return fmt.Errorf("unknown arguments %q", args)
	}
	all, err := parse(os.Stdin)
	if err != nil {
		return err
	}
	fmt.Println(machine(time.Now(), all))
	text, missing := report(table, all)
	fmt.Print(text)
	if len(missing) > 0 {
		return fmt.Errorf("no samples of %q", missing)
	}
	return nil
}
