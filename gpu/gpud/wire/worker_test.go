package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

const session = "0123456789abcdef"

func reader(s string) *bufio.Reader { return bufio.NewReaderSize(strings.NewReader(s), MaxWorkerLine) }

func TestReadToNode(t *testing.T) {
	r := reader(`{"op":"register","id":7,"register":{"vgpu":"v","session":"` + session + `","name":"a\u001b[2J","held":5}}
{"op":"acquire","id":8,"later":"field","totals":{"gpuNanos":9}}
`)
	m, err := ReadToNode(r)
	if err != nil || m.ID != 7 || m.Register.Held != 5 || m.Register.Name != "a?[2J" {
		t.Fatalf("first line = %+v, %v, want ID 7, 5 bytes held and the cleaned name a?[2J", m, err)
	}
	m, err = ReadToNode(r)
	if err != nil || m.Op != OpAcquire || m.Totals.GPUNanos != 9 {
		t.Fatalf("second line = %+v, %v, want an acquire with 9 ns", m, err)
	}
	if _, err := ReadToNode(r); !errors.Is(err, io.EOF) {
		t.Fatalf("error at the end = %v, want EOF", err)
	}
}

func TestBadLines(t *testing.T) {
	for name, line := range map[string]string{
		"not JSON":          "GET / HTTP/1.1\n",
		"no operation":      "{}\n",
		"unknown operation": `{"op":"format"}` + "\n",
		"no registration":   `{"op":"register"}` + "\n",
		"short session":     `{"op":"register","register":{"vgpu":"v","session":"1"}}` + "\n",
		"long vgpu":         `{"op":"register","register":{"vgpu":"` + strings.Repeat("v", 129) + `","session":"` + session + `"}}` + "\n",
		"vgpu with newline": `{"op":"register","register":{"vgpu":"v\nx","session":"` + session + `"}}` + "\n",
		"long token":        `{"op":"register","register":{"vgpu":"v","session":"` + session + `","token":"` + strings.Repeat("t", MaxToken+1) + `"}}` + "\n",
		"more swapped":      `{"op":"register","register":{"vgpu":"v","session":"` + session + `","held":5,"out":true,"swapped":6}}` + "\n",
		"swapped and here":  `{"op":"register","register":{"vgpu":"v","session":"` + session + `","held":5,"swapped":5}}` + "\n",
		"negative bytes":    `{"op":"reserve","bytes":-1}` + "\n",
		"no bytes":          `{"op":"reserve"}` + "\n",
		"more than 64 bits": `{"op":"reserve","bytes":18446744073709551616}` + "\n",
		"no totals":         `{"op":"totals"}` + "\n",
		"long line":         `{"op":"yield","x":"` + strings.Repeat("x", MaxWorkerLine) + `"}` + "\n",
		"endless line":      strings.Repeat(" ", 10*MaxWorkerLine),
	} {
		if m, err := ReadToNode(reader(line)); !errors.Is(err, ErrLine) {
			t.Errorf("%s: ReadToNode = %+v, %v, want %v", name, m, err, ErrLine)
		}
	}
}

func TestWriteIsRead(t *testing.T) {
	var b bytes.Buffer
	in := ToNode{Op: OpBye, ID: 3, Totals: &worker.Totals{GPUNanos: 1<<64 - 1, Launches: 2}}
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	out, err := ReadToNode(bufio.NewReaderSize(&b, MaxWorkerLine))
	if diff := cmp.Diff(in, out); err != nil || diff != "" {
		t.Fatalf("error %v, mismatch (-want +got):\n%s", err, diff)
	}
}

// token is the token of a piece of shared memory.
const token = "0123456789abcdef0123456789abcdef"

func FuzzReadToNode(f *testing.F) {
	for _, s := range []string{
		`{"op":"register","id":7,"register":{"vgpu":"v","session":"` + session + `","name":"n","held":5,"totals":{}}}` + "\n",
		`{"op":"acquire","id":8}` + "\n", `{"op":"totals","totals":{"gpuNanos":1}}` + "\n",
		`{"op":"register","register":{"vgpu":"v","session":"` + session + `","held":5,"evictable":true,"out":true,"swapped":5}}` + "\n",
		`{"op":"evicted","bytes":7,"failed":"no\u001b[2J"}` + "\n" + `{"op":"restored"}` + "\n" + `{"op":"evictable"}` + "\n", "{}\n",
		`{"op":"share","id":9,"share":{"t":"` + token + `","s":4096},"file":true}` + "\n" + `{"op":"open","id":1,"share":{"t":"` + token + `"}}` + "\n",
		`{"op":"unshare","share":{"t":"` + token + `"},"keep":true}` + "\n" + `{"op":"share","share":{"t":"short","s":1}}` + "\n",
		`{"op":"register","register":{"vgpu":"v","session":"` + session + `","shares":[{"t":"` + token + `","s":7,"o":true}]}}` + "\n", "\n", `{"op":`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(b), MaxWorkerLine)
		for {
			m, err := ReadToNode(r)
			if err != nil {
				return
			}
			if m.Op == OpShare || m.Op == OpOpen || m.Op == OpUnshare {
				if len(m.Share.Token) != TokenLength || m.Share.Size > maxShare {
					t.Fatalf("ReadToNode accepted an invalid share: %+v", m)
				}
			}
			if len(m.Name) > MaxName || m.Register != nil && m.Op == OpRegister && (len(m.Register.Name) > MaxName || !printable(m.Register.VGPU, 1, MaxID) || m.Register.Swapped > m.Register.Held) ||
				(m.Op == OpEvicted || m.Op == OpRestored) && m.Failed != cleanText(m.Failed) {
				t.Fatalf("ReadToNode accepted an invalid line: %+v", m)
			}
			var back bytes.Buffer
			if err := Write(&back, m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestFiles checks that descriptors arrive with the lines that they were sent with, and
// that descriptors which no line refers to end the connection.
func TestFiles(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		c, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends[i] = c.(*net.UnixConn)
	}
	files := NewFiles(ends[1])
	defer files.Close()
	in := bufio.NewReaderSize(files, MaxWorkerLine)
	send := func(name string) {
		t.Helper()
		f, err := os.CreateTemp(t.TempDir(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		m := ToNode{Op: OpShare, Share: &Share{Token: token, Size: 1}, HasFile: true}
		if err := errors.Join(Write(ends[0], ToNode{Op: OpYield}), WriteWith(ends[0], m, f)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"first", "second", "third"} {
		send(name)
	}
	for _, name := range []string{"first", "second", "third"} {
		for _, op := range []string{OpYield, OpShare} {
			m, err := ReadToNode(in)
			if err != nil || m.Op != op {
				t.Fatalf("line = %+v, %v, want operation %s", m, err, op)
			}
		}
		f, err := files.Take()
		if err != nil {
			t.Fatal(err)
		}
		if at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil || !strings.Contains(at, name) {
			t.Errorf("descriptor of the line = %s, %v, want %s", at, err, name)
		}
		_ = f.Close()
	}
	if _, err := files.Take(); !errors.Is(err, ErrLine) {
		t.Errorf("Take without a descriptor = %v, want %v", err, ErrLine)
	}
	for range maxFiles + 2 { // which are not taken
		send("more")
	}
	for err = nil; err == nil; {
		_, err = ReadToNode(in)
	}
	if !errors.Is(err, ErrLine) {
		t.Errorf("read with too many descriptors = %v, want %v", err, ErrLine)
	}
}
