// Command testrun runs the tests of "make test" and "make test-long" and reports the results
// (docs/tests.md):
//
//   - plan.go determines which packages run together, in which order, and what may run
//     at the same time; choose.go selects tests for RUN= and CHANGED=;
//   - job.go runs "go test -json", several packages at a time; room.go decides when
//     one more may begin;
//   - report.go reads its output and prints a line per package, the output of
//     failures, every skip with its reason, and at the end a count;
//   - again.go runs a few tests that failed once more, alone;
//   - times.go compares with the times in the tree and with the layer's budget;
//   - evidence.go keeps the files of unsteady tests;
//   - record.go writes the results of the long layer to docs/test-long.md;
//   - history.go records the runs on this machine, and which tests were
//     unsteady in them.
//
// It exits 1 when a test failed, when a package did not build, when nothing
// ran, when a test skipped without need, when a test was unsteady twice in ten
// runs, or when the whole took more than twice its budget.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

type options struct {
	run, changed string
	packages     string // a regexp of paths; empty: all
	stages       string
	record       bool
	fuzzed       string // the result of make fuzz
	prepare      bool
	rank         rank
	began        time.Time // of the whole, before this program
	started      time.Time // of this program
	watch        patience.Watch
	build        string // folder of what is built
	history      string
	mended       string
}

func main() {
	o := options{started: time.Now(), watch: patience.Start()}
	var began int64
	flag.StringVar(&o.run, "run", "", "only the tests and stories whose names match this `regexp`")
	flag.StringVar(&o.changed, "changed", "", "only what the change since this `commit` can reach; 1: since the branch left its upstream")
	flag.StringVar(&o.packages, "packages", "", "only the packages whose paths match this `regexp`")
	flag.StringVar(&o.stages, "stages", "", "a `file` with a line \"SECONDS NAME\" for each stage before the tests")
	flag.Int64Var(&began, "began", time.Now().Unix(), "when the whole began, in `seconds` since 1970")
	flag.BoolVar(&o.record, "record", false, "write the times of the last run into the tree, and end")
	flag.StringVar(&o.fuzzed, "fuzzed", "", "record this `result` of the fuzz targets, and end")
	flag.BoolVar(&o.prepare, "prepare", false, "print the targets of the Makefile that the chosen tests need, and end")
	name := flag.String("layer", "test", "`check`, test or long")
	flag.Parse()
	var ok bool
	if o.rank, ok = ranks[*name]; !ok {
		fmt.Fprintf(os.Stderr, "testrun: there is no layer %q: want check, test or long\n", *name)
		os.Exit(2)
	}
	o.began = time.Unix(began, 0)
	if o.build = os.Getenv("BASALT_BUILD"); o.build == "" {
		o.build = "build"
	}
	o.history = filepath.Join(cacheDir(), "test-history.txt")
	o.mended = mendedFile
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := o.main(ctx, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		code = 1
	}
	os.Exit(code)
}

// cacheDir returns the folder of the machine's history, which is shared by clones.
func cacheDir() string {
	if dir := os.Getenv("BASALT_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "basalt")
}

func (o options) main(ctx context.Context, out io.Writer) (code int, err error) {
	if o.record {
		return 0, recordTimes(filepath.Join(o.build, "test", timesName), timesFile)
	}
	if o.fuzzed != "" {
		return 0, newRecord(longFile, nil).put(fuzzing, time.Since(o.began).Seconds(), o.fuzzed, time.Now())
	}
	before, err := readTimes(timesFile)
	if err != nil {
		return 1, err
	}
	all, err := packages(ctx)
	if err != nil {
		return 1, err
	}
	chosen, err := o.choose(ctx, all)
	if err != nil {
		return 1, err
	}
	if o.prepare {
		fmt.Fprintln(out, strings.Join(preparations(chosen), " "))
		return 0, nil
	}
	if len(chosen) == 0 {
		fmt.Fprintln(out, "testrun: the change reaches no test")
		return 0, nil
	}
	kept := filepath.Join(o.build, "failed")
	if err := os.RemoveAll(kept); err != nil {
		return 1, err
	}
	r := newReport(out, kept)
	r.short = o.rank.short
	if o.rank == ranks["long"] {
		r.record = newRecord(longFile, chosen)
	}
	runJobs(ctx, o.rank.jobs(chosen, before), r)
	code = r.close(out)
	var unsteady []test
	if again := r.again(); code != 0 && len(again) > 0 && ctx.Err() == nil {
		code, unsteady = runAgain(ctx, again, o.rank.limit, out, kept)
		if err := r.recordUnsteady(unsteady); err != nil {
			fmt.Fprintln(out, "testrun:", err)
		}
		if err := o.keepEvidence(kept, unsteady, time.Now()); err != nil {
			fmt.Fprintln(out, "testrun: what unsteady tests left is not kept:", err)
		}
	}
	o.account(r, before, out)
	r.printKept(out)
	if o.run == "" && o.changed == "" && o.packages == "" {
		bad, err := o.remember(r, unsteady, code, out)
		if err != nil {
			fmt.Fprintln(out, "testrun: the run is not remembered:", err)
		}
		if bad || !o.inBudget(out) {
			code = 1
		}
	}
	r.printCount(out)
	return code, nil
}

// rank is a layer: which tests run, and their budget on two idle processors (docs/tests.md).
type rank struct {
	name   string
	budget time.Duration // 0: no budget
	short  bool          // go test -short, and results may be cached
	limit  time.Duration // of one package, so that a hang ends
}

var ranks = map[string]rank{
	"check": {"make check", 3 * time.Minute, true, 45 * time.Minute},
	"test":  {"make test", 30 * time.Minute, false, 45 * time.Minute},
	"long":  {"make test-long", 0, false, 8 * time.Hour},
}
