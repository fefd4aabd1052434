package guest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// bothGPUs runs a test of what kernels print on a soft GPU and on a nested one, whose
// driver writes it to the worker's own stdout.
func bothGPUs(t *testing.T, f func(t *testing.T, g *gpud)) {
	t.Run("soft", func(t *testing.T) { f(t, startGPUD(t)) })
	t.Run("nested", func(t *testing.T) { f(t, startNestedGPUD(t)) })
}

// Programs that run at the same time get what their own kernels print, on their stdout.
func TestPrintfOfTwoPrograms(t *testing.T) {
	bothGPUs(t, func(t *testing.T, g *gpud) {
		var all sync.WaitGroup
		for i := range 3 {
			cmd := g.command(t, object("api"), "printf_lines")
			first := 1000 * (i + 1)
			cmd.Env = append(cmd.Env, fmt.Sprint("PRINTF_FIRST=", first))
			all.Go(func() {
				var errs bytes.Buffer
				cmd.Stderr = &errs
				out, err := cmd.Output()
				var want strings.Builder
				for n := range 200 {
					fmt.Fprintf(&want, "line %d\n", first+n)
				}
				want.WriteString("ok\n")
				if err != nil || string(out) != want.String() || errs.Len() > 0 {
					t.Errorf("program %d printed %q and %q: %v; want lines %d to %d and ok", i, out, errs.String(), err, first, first+199)
				}
			})
		}
		all.Wait()
	})
}

// A program whose worker is killed has what was printed until it last waited.
func TestPrintfOfAKilledWorker(t *testing.T) {
	bothGPUs(t, func(t *testing.T, g *gpud) {
		cmd := g.command(t, object("api"), "printf_killed")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(stdout)
		for _, want := range []string{"line 1\n", "ready\n"} {
			if got, err := out.ReadString('\n'); err != nil || got != want {
				t.Fatalf("line = %q, %v, want %q; stderr: %s", got, err, want, errs.String())
			}
		}
		if err := g.worker(t).Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(stdin, "go\n"); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(out)
		if err := cmd.Wait(); err != nil || string(rest) != "end\nok\n" {
			t.Errorf("after its worker was killed the program printed %q: %v, want %q; stderr: %s", rest, err, "end\nok\n", errs.String())
		}
	})
}

// listener returns the process whose arguments have a gpud's socket.
func listener(t *testing.T, socket string) (pid int) {
	t.Helper()
	patience.Until(t, 30*time.Second, "the process of gpud is found", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, f := range all {
			if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("--socket\x00"+socket+"\x00")) {
				_, err := fmt.Sscanf(f, "/proc/%d/cmdline", &pid)
				return err == nil
			}
		}
		return false
	})
	return pid
}
