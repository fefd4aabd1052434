// Package host reads from the kernel what a machine uses.
package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Use is the use of a machine. Sums count from its boot.
type Use struct {
	CPUs        int
	BusyTicks   uint64 // of all CPUs together, TicksPerSecond for each
	MemoryBytes uint64 // total
	UsedBytes   uint64 // used, without caches that can be freed

	ReadBytes, WriteBytes    uint64 // of disks with a hardware device, not of those on top of them
	ReceivedBytes, SentBytes uint64 // on network cards
}

// TicksPerSecond is the unit of /proc: USER_HZ, which is 100 on x86-64.
const TicksPerSecond = 100

// sectorBytes is the unit of /proc/diskstats, whatever the disk's sector size.
const sectorBytes = 512

// maxFile limits what is read of one file of the kernel, in bytes.
const maxFile = 1 << 20

// Read reads the machine's use from the files below root, which is / outside of
// tests.
func Read(root string) (u Use, err error) {
	var errs []error
	file := func(name string, parse func([]byte) error) {
		raw, err := readFile(filepath.Join(root, name))
		if err == nil {
			err = parse(raw)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("/%s: %w", name, err))
		}
	}
	isDevice := func(class string) func(string) bool {
		return func(name string) bool {
			_, err := os.Stat(filepath.Join(root, "sys", class, name, "device"))
			return err == nil
		}
	}
	file("proc/stat", u.stat)
	file("proc/meminfo", u.meminfo)
	file("proc/diskstats", func(raw []byte) error { return u.diskstats(raw, isDevice("block")) })
	file("proc/net/dev", func(raw []byte) error {
		card := isDevice("class/net")
		if !anyCard(raw, card) { // a network namespace has only virtual interfaces
			out := ""
			file("proc/net/route", func(raw []byte) error { out = wayOut(raw); return nil })
			card = func(name string) bool { return name == out }
		}
		return u.netDev(raw, card)
	})
	return u, errors.Join(errs...)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

var errForm = errors.New("not in its form")

// stat parses /proc/stat: its first line sums user, nice, system, idle, iowait,
// irq, softirq, steal; a line for each CPU follows.
func (u *Use) stat(raw []byte) error {
	for words := range lines(raw) {
		name := string(words[0])
		switch {
		case name == "cpu":
			if len(words) < 8 {
				return errForm
			}
			for _, i := range []int{1, 2, 3, 6, 7} { // without idle, iowait and steal
				n, err := strconv.ParseUint(string(words[i]), 10, 64)
				if err != nil {
					return errForm
				}
				u.BusyTicks += n
			}
		case len(name) > 3 && name[:3] == "cpu":
			u.CPUs++
		}
	}
	if u.CPUs == 0 {
		return errForm
	}
	return nil
}

func (u *Use) meminfo(raw []byte) error {
	var available uint64
	seen := 0
	for words := range lines(raw) {
		var into *uint64
		switch string(words[0]) {
		case "MemTotal:":
			into = &u.MemoryBytes
		case "MemAvailable:":
			into = &available
		default:
			continue
		}
		if len(words) < 2 {
			return errForm
		}
		n, err := strconv.ParseUint(string(words[1]), 10, 54) // in KiB
		if err != nil {
			return errForm
		}
		*into = n << 10
		seen++
	}
	if seen != 2 || available > u.MemoryBytes {
		return errForm
	}
	u.UsedBytes = u.MemoryBytes - available
	return nil
}

// diskstats parses /proc/diskstats: major, minor, name, reads, merged, sectors, ms,
// writes, merged, sectors, …
func (u *Use) diskstats(raw []byte, device func(string) bool) error {
	for words := range lines(raw) {
		if len(words) < 10 {
			return errForm
		}
		if !device(string(words[2])) {
			continue
		}
		read, err1 := strconv.ParseUint(string(words[5]), 10, 54)
		written, err2 := strconv.ParseUint(string(words[9]), 10, 54)
		if err1 != nil || err2 != nil {
			return errForm
		}
		u.ReadBytes += read * sectorBytes
		u.WriteBytes += written * sectorBytes
	}
	return nil
}

// netDev parses /proc/net/dev: two lines of headings, then "name: received … (8
// numbers) sent …".
func (u *Use) netDev(raw []byte, card func(string) bool) error {
	for name, numbers := range cards(raw) {
		if !card(name) {
			continue
		}
		if len(numbers) < 16 {
			return errForm
		}
		received, err1 := strconv.ParseUint(string(numbers[0]), 10, 64)
		sent, err2 := strconv.ParseUint(string(numbers[8]), 10, 64)
		if err1 != nil || err2 != nil {
			return errForm
		}
		u.ReceivedBytes += received
		u.SentBytes += sent
	}
	return nil
}

func anyCard(raw []byte, card func(string) bool) bool {
	for name := range cards(raw) {
		if card(name) {
			return true
		}
	}
	return false
}

// cards iterates over the interfaces of /proc/net/dev and their numbers.
func cards(raw []byte) func(yield func(string, [][]byte) bool) {
	return func(yield func(string, [][]byte) bool) {
		s := bufio.NewScanner(bytes.NewReader(raw))
		for s.Scan() {
			name, numbers, ok := bytes.Cut(s.Bytes(), []byte(":"))
			if name = bytes.TrimSpace(name); ok && len(name) > 0 && !yield(string(name), bytes.Fields(numbers)) {
				return
			}
		}
	}
}

// wayOut returns the interface of the default route (destination 0) in
// /proc/net/route.
func wayOut(raw []byte) string {
	for words := range lines(raw) {
		if len(words) > 2 && string(words[1]) == "00000000" {
			return string(words[0])
		}
	}
	return ""
}

// lines iterates over the words of each line that is not blank.
func lines(raw []byte) func(yield func([][]byte) bool) {
	return func(yield func([][]byte) bool) {
		s := bufio.NewScanner(bytes.NewReader(raw))
		for s.Scan() {
			if words := bytes.Fields(s.Bytes()); len(words) > 0 && !yield(words) {
				return
			}
		}
	}
}
