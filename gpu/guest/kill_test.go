package guest_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
)

// The C tests call every function. Here one end of the channel is killed at a random
// moment while such a test runs. A killed program leaves nothing behind. A program whose
// worker was killed exits by itself, and not by a signal. The long layer runs each test
// many times, make test runs some of the tests.
func TestKilledAtAnyMoment(t *testing.T) {
	g := startGPUD(t)
	control := client.NewControl(g.socket + ".control")
	defer control.Close()
	names := strings.Fields(g.run(t, object("api"), "list"))
	rounds := 24
	if layer.Long() {
		rounds = 20 * len(names)
	}
	random := seeded(t)
	for range rounds {
		name := names[random.IntN(len(names))]
		after := time.Duration(random.IntN(150)) * time.Millisecond
		worker := random.IntN(2) == 0
		p := g.begin(t, name)
		select {
		case <-p.ended:
		case <-time.After(after): // a random moment
		}
		if worker {
			for _, w := range children(t, g.cmd.Process.Pid) {
				_ = w.Kill()
			}
		} else {
			_ = p.cmd.Process.Kill()
		}
		p.wait(t, worker)
		patience.Until(t, time.Minute, "nothing is left of "+name, func() bool {
			all, err := control.VGPUs(t.Context())
			return err == nil && len(all) == 1 && len(all[0].Processes) == 0 && all[0].VRAMUsed == 0 && len(children(t, g.cmd.Process.Pid)) == 0
		})
		if t.Failed() {
			t.Fatalf("failed while %s ran: killed after %v, the worker (true) or the program (false): %v", name, after, worker)
		}
	}
	g.run(t, object("api"), "copies")
}

// If a standalone gpud is killed, its workers end too, and their program exits by itself.
func TestKilledGpud(t *testing.T) {
	random := seeded(t)
	rounds := 3
	if layer.Long() {
		rounds = 100
	}
	for range rounds {
		g := startGPUD(t)
		names := strings.Fields(g.run(t, object("api"), "list"))
		p := g.begin(t, names[random.IntN(len(names))])
		select {
		case <-p.ended:
		case <-time.After(time.Duration(random.IntN(150)) * time.Millisecond): // a random moment
		}
		_ = g.cmd.Process.Kill()
		p.wait(t, true)
	}
}

// seeded returns a random generator, whose seed is logged and can be set by BASALT_SEED.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if v := os.Getenv("BASALT_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("BASALT_SEED=%d repeats the tests and their moments", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// program is a running C test.
type program struct {
	name  string
	cmd   *exec.Cmd
	out   bytes.Buffer
	ended chan error // receives the result of Wait, and is then closed
}

// begin starts a C test on g's vGPU.
func (g *gpud) begin(t *testing.T, name string) *program {
	t.Helper()
	p := &program{name: name, cmd: g.command(t, object("api"), name), ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait(); close(p.ended) }()
	return p
}

// wait waits for the program's end. The test fails if a signal ended it: any signal if
// byItself is set, else any but SIGKILL.
func (p *program) wait(t *testing.T, byItself bool) {
	t.Helper()
	patience.Receive(t, apiPatience, p.name+" ends", p.ended)
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && (byItself || s.Signal() != syscall.SIGKILL) {
		t.Errorf("%s was ended by signal %v, want an exit; it printed\n%s", p.name, s.Signal(), p.out.String())
	}
}
