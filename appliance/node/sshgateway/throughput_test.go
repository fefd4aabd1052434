package sshgateway

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// transferred is how many bytes one connection of BenchmarkThroughput transfers.
const transferred = 512 << 20

// cost is what one transfer needed.
type cost struct {
	wall, gateway, client, guest time.Duration // the last three are processor time
	calls                        int64         // system calls of the gateway that read or wrote
}

// BenchmarkThroughput compares connections through the gateway with direct ones, alternately,
// and prints the medians: throughput and duration, their ratio to a direct connection, and what
// depends less on other load of the machine: the processor time per GiB of each process, and the
// gateway's reads and writes. The benchmark's process runs the gateway only. A good number of
// rounds is -benchtime 10x.
func BenchmarkThroughput(b *testing.B) {
	for _, direction := range []string{"download", "upload"} {
		b.Run(direction, func(b *testing.B) {
			w := newWorld(b)
			costs := map[string][]cost{}
			for b.Loop() {
				for _, way := range []string{"direct", "gateway", "jump"} {
					costs[way] = append(costs[way], w.transfer(b, way, direction))
				}
			}
			b.ReportMetric(0, "ns/op") // of no use: that of all three
			direct := median(costs["direct"], func(c cost) time.Duration { return c.wall })
			for way, all := range costs {
				wall := median(all, func(c cost) time.Duration { return c.wall })
				b.ReportMetric(transferred/1e6/wall.Seconds(), way+"-MB/s")
				b.ReportMetric(wall.Seconds(), way+"-s")
				perGiB := func(process string, of func(cost) time.Duration) {
					b.ReportMetric(median(all, of).Seconds()*(1<<30)/transferred, way+"-"+process+"-s/GiB")
				}
				perGiB("client", func(c cost) time.Duration { return c.client })
				perGiB("guest", func(c cost) time.Duration { return c.guest })
				if way != "direct" {
					perGiB("gateway", func(c cost) time.Duration { return c.gateway })
					b.ReportMetric(float64(median(all, func(c cost) int64 { return c.calls }))*(1<<20)/transferred, way+"-calls/MiB")
					b.ReportMetric(100*direct.Seconds()/wall.Seconds(), way+"-%-of-direct")
				}
			}
		})
	}
}

func median[T cmp.Ordered](all []cost, of func(cost) T) T {
	var d []T
	for _, c := range all {
		d = append(d, of(c))
	}
	slices.Sort(d)
	return d[len(d)/2]
}

// transfer runs OpenSSH's client, which receives or sends transferred bytes, with the cipher
// that the gateway prefers on all ways.
func (w *world) transfer(b *testing.B, way, direction string) cost {
	b.Helper()
	_, port, _ := net.SplitHostPort(w.gateway)
	common := []string{"-F", "none", "-i", w.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-c", ciphers[0]}
	args := slices.Clone(common)
	switch way {
	case "direct":
		args = append(args, "-p", strconv.Itoa(w.port), w.access.GuestUser+"@127.0.0.1")
	case "gateway":
		args = append(args, "-p", port, "web/demo@127.0.0.1")
	case "jump": // -J does not give the options to the connection to the gateway
		proxy := append(append([]string{tool(b, "ssh")}, common...), "-p", port, "-W", "demo:22", "web/demo@127.0.0.1")
		args = append(args, "-o", "ProxyCommand="+strings.Join(proxy, " "), w.access.GuestUser+"@demo")
	}
	cmd := exec.CommandContext(b.Context(), tool(b, "ssh"), args...) //nolint:gosec // found above
	cmd.Stderr = os.Stderr
	var err error
	if direction == "upload" {
		cmd.Args = append(cmd.Args, fmt.Sprintf("test $(wc -c) = %d", transferred))
		cmd.Stdin = w.zeros(b)
	} else {
		cmd.Args = append(cmd.Args, fmt.Sprintf("head -c %d /dev/zero", transferred))
		if cmd.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			b.Fatal(err)
		}
		defer cmd.Stdout.(*os.File).Close()
	}
	began, own, guest, calls := time.Now(), ownTime(b), w.guestTime(b), ownCalls(b)
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s of %d bytes, %s: %v", direction, transferred, way, err)
	}
	c := cost{wall: time.Since(began), gateway: ownTime(b) - own, calls: ownCalls(b) - calls, client: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	patience.Until(b, 30*time.Second, "sshd's process of the connection has ended", func() bool {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", w.sshdPID))
		return err == nil && len(children) == 0
	})
	c.guest = w.guestTime(b) - guest
	return c
}

// zeros returns a file of transferred zero bytes.
func (w *world) zeros(b *testing.B) *os.File {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "zeros"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(transferred); err != nil {
		b.Fatal(err)
	}
	return f
}

// ownTime returns the processor time of this process.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ownCalls returns how often this process has read and written (proc(5), io).
func ownCalls(b *testing.B) int64 {
	b.Helper()
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	var reads, writes, skipped int64
	if _, err := fmt.Sscanf(string(raw), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d", &skipped, &skipped, &reads, &writes); err != nil {
		b.Fatal(err)
	}
	return reads + writes
}

// guestTime returns the processor time of sshd and of its connections that have ended (proc(5)).
func (w *world) guestTime(b *testing.B) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.sshdPID))
	if err != nil {
		b.Fatal(err)
	}
	const tick = time.Second / 100                                                  // sysconf(_SC_CLK_TCK) of Linux
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')'):])) // from the third, less its parenthesis
	sum := int64(0)
	for _, f := range fields[12:16] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum) * tick
}
