package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const head = ".version 6.4\n.target sm_61\n.address_size 64\n"

var files = map[string]string{
	"good.ptx":  head + ".global .u64 table[2] = {f, 1};\n.func f() { ret; }\n.visible .entry k() { ret; }\n",
	"mixed.ptx": head + ".visible .entry good() { ret; }\n.visible .entry bad()\n{\nfrobnicate.u32 1;\nret;\n}\n",
	"wrong.ptx": head + ".visible .entry k() { add.u32 1 2; }\n",
	"lib.fatbin": fatbins(head+".visible .entry k() { ret; }\n") +
		"\x00\x00\x00", // bytes after the end of the image that its header gives
	"program": program(".nv_fatbin", fatbins(head+".visible .entry k() { ret; }\n", head+".visible .entry bad() { .reg .b32 %r<9>; frobnicate.b32 %r1, %r2; ret; }\n")),
	"lib.a":   archive(program(".nv_fatbin", fatbins(head+".visible .entry k() { ret; }\n"))),
	"host":    program("", ""),
	"offload": program(".rodata", "some text\x00// BEGIN PREAMBLE\n"+head+".extern .func f();\n.visible .entry k() { call f; ret; }\n\x00\x00\x00"+
		"// BEGIN PREAMBLE\n"+head+".visible .func f() { frobnicate.b32 1; ret; }\n\x00more"),
	"text": "hello\n",
}

// fatbins returns a fatbin for each text, one after the other.
func fatbins(texts ...string) string {
	var b []byte
	le := binary.LittleEndian
	for _, text := range texts {
		text += strings.Repeat("\x00", 8-len(text)%8)
		b = le.AppendUint32(b, 0xBA55ED50)
		b = le.AppendUint16(b, 1)
		b = le.AppendUint16(b, 16)
		b = le.AppendUint64(b, uint64(64+len(text)))
		entry := make([]byte, 64)
		le.PutUint16(entry, 1) // PTX
		le.PutUint32(entry[4:], 64)
		le.PutUint64(entry[8:], uint64(len(text)))
		le.PutUint32(entry[28:], 61)
		b = append(append(b, entry...), text...)
	}
	return string(b)
}

// archive returns an archive with one member.
func archive(member string) string {
	return "!<arch>\n" + fmt.Sprintf("%-48s%-10d`\n", "k.o/", len(member)) + member
}

// program returns an ELF file with a loaded section, unless section is empty.
func program(name, section string) string {
	names := "\x00" + name + "\x00"
	le := binary.LittleEndian
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	le.PutUint16(header[16:], 2)
	le.PutUint16(header[18:], 62)
	le.PutUint32(header[20:], 1)
	le.PutUint64(header[40:], uint64(64+len(names)+len(section)))
	le.PutUint16(header[52:], 64)
	le.PutUint16(header[58:], 64)
	le.PutUint16(header[60:], 3)
	le.PutUint16(header[62:], 1)
	entry := func(name, kind uint32, flags uint64, at, size int) []byte {
		h := make([]byte, 64)
		le.PutUint32(h, name)
		le.PutUint32(h[4:], kind)
		le.PutUint64(h[8:], flags)
		le.PutUint64(h[24:], uint64(at))
		le.PutUint64(h[32:], uint64(size))
		return h
	}
	return string(header) + names + section + string(make([]byte, 64)) +
		string(entry(0, 3, 0, 64, len(names))) + string(entry(1, 1, 2, 64+len(names), len(section)))
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct {
		args   string
		status int
		out    string // the whole output
		errs   string // a part of the errors
	}{
		{"check good.ptx", 0, "good.ptx: 0 of 1 kernels refused\n  runs     k\n", ""},
		{"check lib.fatbin", 0, "lib.fatbin: 0 of 1 kernels refused\n  runs     k\n", ""},
		{"check lib.a", 0, "lib.a: 0 of 1 kernels refused\n  runs     k\n", ""},
		{"check mixed.ptx", 1, "mixed.ptx: 1 of 2 kernels refused\n  runs     good\n  refused  bad: line 7: not implemented: opcode frobnicate: frobnicate.u32 1;\n", ""},
		{"check good.ptx wrong.ptx", 1, "good.ptx: 0 of 1 kernels refused\n  runs     k\nwrong.ptx: refused: line 4: expected \";\", found \"2\": add.u32 1 2\n", ""},
		{"check program", 1, "program: 0 of 1 kernels refused\n  runs     k\nprogram, image 1: 1 of 1 kernels refused\n  refused  bad: line 4: not implemented: opcode frobnicate: frobnicate.b32 %r1, %r2;\n", ""},
		{"check offload", 1, "offload: 1 of 1 kernels refused\n  refused  k: PTX object 1: line 5: not implemented: opcode frobnicate: frobnicate.b32 1;\n", ""},
		{"check text", 1, "text: refused: line 2: unexpected \"hello\"\n", ""},
		{"check host", 2, "", "host: the file contains no fatbin"},
		{"check none mixed.ptx", 2, "mixed.ptx: 1 of 2 kernels refused\n  runs     good\n  refused  bad: line 7: not implemented: opcode frobnicate: frobnicate.u32 1;\n", "none: no such file"},
		{"check", 2, "", "usage: basalt-ptx check"},
		{"walk", 2, "", "usage: basalt-ptx check"},
		{"show mixed.ptx good", 0, "kernel good: 0 registers of 32 bits, 0 of 64, 0 predicates; 0 bytes of local, 0 of shared memory\nb0:\n  return\nb1: // entry\n  return" + strings.Repeat(" ", 43) + "// 4: ret;\n", ""},
		{"show mixed.ptx bad", 1, "", "mixed.ptx: kernel bad: line 7: not implemented: opcode frobnicate"},
		{"show mixed.ptx neither", 2, "", "mixed.ptx has no kernel neither"},
		{"show none", 2, "", "none: no such file"},
		{"show", 2, "", "basalt-ptx show FILE"},
		{"check -json mixed.ptx wrong.ptx", 1, "", ""},
	} {
		var out, errs bytes.Buffer
		status := run(strings.Fields(c.args), &out, &errs)
		if status != c.status || !strings.Contains(errs.String(), c.errs) || !strings.Contains(c.args, "-json") && out.String() != c.out {
			t.Errorf("basalt-ptx %s: status %d, want %d; output:\n%s\nwant:\n%s\nerrors:\n%s\nwant %q", c.args, status, c.status, out.String(), c.out, errs.String(), c.errs)
		}
		if strings.Contains(c.args, "-json") {
			checkJSON(t, out.Bytes())
		}
	}
}

func checkJSON(t *testing.T, out []byte) {
	t.Helper()
	var doc struct{ Images []Image }
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("decode the output of -json: %v\n%s", err, out)
	}
	if len(doc.Images) != 2 || len(doc.Images[0].Kernels) != 2 || doc.Images[0].Kernels[1] != (Kernel{Name: "bad", Line: 7, Rule: "not implemented: opcode frobnicate", Instruction: "frobnicate.u32 1;", Why: "line 7: not implemented: opcode frobnicate: frobnicate.u32 1;"}) || doc.Images[1].Error == "" {
		t.Errorf("images = %+v, want a refused kernel bad with its line and rule, and an image with an error", doc.Images)
	}
}
