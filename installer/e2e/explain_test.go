package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// Diagnosis of a computer that is on but makes no progress: its screen, its processors'
// registers, and its kernel's log in memory, since a quiet kernel writes none of it to
// the serial line.

// explain stores all of it in the folder of a test's failure, logs the end, and ends
// the computer.
func explain(t *testing.T, f failed.Folder, socket, name string) {
	memory := strings.TrimSuffix(socket, ".qmp") + ".memory"
	defer os.Remove(memory)
	answers, err := monitor(socket,
		command("screendump", "filename", filepath.Join(string(f), name+"-screen.png"), "format", "png"),
		command("human-monitor-command", "command-line", "info registers -a"),
		command("human-monitor-command", "command-line", fmt.Sprintf("pmemsave 0 %d %q", memorySize, memory)),
		command("quit"))
	f.Text(name+"-monitor.txt", fmt.Sprintf("%s%v", answers, err))
	log := kernelLog(memory)
	f.Text(name+"-kernel.txt", log)
	t.Logf("the kernel's log in memory ends with:\n%s\nprocessors:\n%s", log[max(0, len(log)-1500):], pointers(answers))
}

// command returns a command for QEMU's monitor, with the names and values of its
// arguments.
func command(name string, arguments ...string) string {
	c := struct {
		Execute   string            `json:"execute"`
		Arguments map[string]string `json:"arguments,omitempty"`
	}{name, map[string]string{}}
	for pair := range slices.Chunk(arguments, 2) {
		c.Arguments[pair[0]] = pair[1]
	}
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// monitor sends commands to QEMU's QMP socket, of which the last ends QEMU, and returns
// the responses.
func monitor(socket string, commands ...string) (string, error) {
	ctx, cancel := patience.Context(context.Background(), time.Minute)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, command("qmp_capabilities")+strings.Join(commands, "")); err != nil {
		return "", err
	}
	answers, err := io.ReadAll(conn)
	return strings.ReplaceAll(string(answers), `\r\n`, "\n"), err
}

// pointers returns the lines of "info registers" with the instruction pointers, which
// show whether a processor waits or loops.
func pointers(registers string) string {
	var lines []string
	for line := range strings.Lines(registers) {
		if strings.Contains(line, "RIP=") || strings.Contains(line, "EIP=") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// longestLog exceeds the size of a kernel's log: 256 KiB for two processors.
const longestLog = 512 << 10

// kernelLog finds Linux's log in a computer's memory. Its messages follow each other
// from "Linux version" on, with a few bytes in between, and the next is the command
// line.
func kernelLog(memory string) string {
	data, err := mapped(memory)
	if err != nil {
		return err.Error()
	}
	defer syscall.Munmap(data)
	first := []byte("Linux version ")
	for rest := data; ; {
		_, after, found := bytes.Cut(rest, first)
		if !found {
			return "no kernel has begun its log"
		}
		if bytes.Contains(after[:min(len(after), 1<<10)], []byte("Command line: ")) {
			return string(first) + printable(after[:min(len(after), longestLog)])
		}
		rest = after
	}
}

// mapped returns a file's content, memory-mapped since it is as large as a computer's
// memory.
func mapped(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return syscall.Mmap(int(f.Fd()), 0, memorySize, syscall.PROT_READ, syscall.MAP_SHARED)
}

// printable returns the runs of text in data, one per line.
func printable(data []byte) string {
	const shortest = 6 // shorter ones are random
	runs := bytes.FieldsFunc(data, func(r rune) bool { return r < ' ' || r > '~' })
	runs = slices.DeleteFunc(runs, func(r []byte) bool { return len(r) < shortest })
	return string(bytes.Join(runs, []byte("\n")))
}
