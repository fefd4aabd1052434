package compile

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

var update = flag.Bool("update", false, "write testdata/refused.txt")

const refusedFile = "testdata/refused.txt"

// refusedBy returns the error of a kernel of one instruction, or nil. An error that is
// not of the kernel's instruction is from the parser.
func refusedBy(inst string) *ptx.Error {
	kernels, err := DefaultCapability.Check([]byte(head + `.global .b32 g; .extern .shared .b8 sh[]; .func (.param .b32 r) f(.param .b32 a) { ret; } .extern .func e();
.entry k(.param .b32 n) {
.reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<8>; .reg .pred %p<4>; .param .b32 v; .param .b64 w;
T: .branchtargets L;
` + inst + "\nL: ret; }\n"))
	if len(kernels) == 1 {
		err = kernels[0].Err
	}
	var e *ptx.Error
	errors.As(err, &e)
	return e
}

// TestRefusedInstructions compares the errors of refused instructions with
// testdata/refused.txt, which has the broken rule, or the form that is not implemented,
// below each instruction.
func TestRefusedInstructions(t *testing.T) {
	want, err := os.ReadFile(refusedFile)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for line := range strings.Lines(string(want)) {
		if line[0] == '\t' {
			continue
		}
		got.WriteString(line)
		if line[0] == '#' || line == "\n" {
			continue
		}
		if e := refusedBy(line); e != nil {
			fmt.Fprintf(&got, "\t%s\n", e.Msg)
		} else {
			t.Errorf("%s: accepted, want it refused", line)
		}
	}
	if *update {
		if err := os.WriteFile(refusedFile, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s mismatch (-want +got, write it with -update):\n%s", refusedFile, diff)
	}
}

// TestAcceptedInstructions checks that a kernel with each instruction of
// testdata/accepted.txt compiles.
func TestAcceptedInstructions(t *testing.T) {
	text, err := os.ReadFile("testdata/accepted.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		kernels, err := DefaultCapability.Check([]byte(".version 8.7\n.target sm_90a\n.address_size 64\n.entry k(.param .align 16 .b8 p[64]) {\n.reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .pred %p<4>;\n" + line + "ret; }\n"))
		if err == nil {
			err = kernels[0].Err
		}
		if err != nil {
			t.Errorf("%s: error %v, want none", strings.TrimSpace(line), err)
		}
	}
}

// accepted has forms of most decoders. TestRefusalsNameTheirRule modifies them.
var accepted = []string{
	"mov.b32 %r1, %r2;", "mov.b32 %r1, {%h0, %h1};", "mov.b64 {%r1, %r2}, %d0;", "mov.v2.b32 {%r1, %r2}, {%r3, %r4};", "mov.u32 %r1, %tid.x;",
	"setp.lt.and.u32 %p0|%p1, %r1, %r2, %p2;", "set.lt.u32.f32 %r1, %f1, %f2;", "set.lt.f16x2.f16x2 %r1, %r2, %r3;", "selp.b32 %r1, %r2, %r3, %p0;", "slct.b32.f32 %r1, %r2, %r3, %f1;",
	"cvt.rn.f32.s32 %f1, %r1;", "cvta.to.global.u64 %d0, %d1;", "isspacep.shared %p0, %d0;", "mapa.shared::cluster.u32 %r1, %r2, %r3;", "getctarank.shared::cluster.u32 %r1, %r2;",
	"ld.global.v2.b32 {%r1, %r2}, [%d0+8];", "ld.shared.u8 %r1, [sh];", "st.global.cg.f32 [%d0], %f1;", "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r0], %r1, [%r2];",
	"atom.global.cas.b32 %r1, [%d0], %r2, %r3;", "red.global.add.f32 [%d0], %f1;", "atom.global.v2.f32.add {%f1, %f2}, [%d0], {%f3, %f4};",
	"and.pred %p0, %p1, %p2;", "not.b32 %r1, %r2;", "lop3.b32 %r1, %r2, %r3, %r4, 0x80;", "activemask.b32 %r1;", "add.sat.s32 %r1, %r2, %r3;", "mad.lo.u32 %r1, %r2, %r3, %r4;",
	"add.cc.u32 %r1, %r2, %r3;", "madc.lo.cc.u32 %r1, %r2, %r3, %r4;", "shfl.sync.up.b32 %r1|%p0, %r2, 1, 0, -1;", "vote.sync.ballot.b32 %r1, %p0, -1;", "match.any.sync.b32 %r1, %r2, -1;",
	"redux.sync.add.u32 %r1, %r2, -1;", "elect.sync %r1|%p0, -1;", "bar.sync 0;", "bar.red.popc.u32 %r1, 0, %p0;", "bar.warp.sync -1;", "barrier.cluster.arrive;",
	"call (v), f, (v);", "bra L;", "brx.idx %r1, T;", "cp.async.ca.shared.global [sh], [%d0], 4;", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh], [%d0], 16, [sh];",
	"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [sh], 16;", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [sh], [%d0, {%r1, %r2}], [sh];",
	"cp.async.mbarrier.arrive.noinc.shared.b64 [sh];", "mbarrier.arrive.shared.b64 %d0, [sh];", "mbarrier.test_wait.parity.shared.b64 %p0, [sh], %r1;", "mbarrier.pending_count.b64 %r1, %d0;",
	"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};", "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [sh];",
	"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;", "wmma.store.d.sync.aligned.m16n16k16.row.global.f32 [%d0], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};", "wgmma.fence.sync.aligned;",
	"vadd.u32.u32.u32.add %r1, %r2.h1, %r3.b0, %r4;", "vadd4.u32.u32.u32.add %r1, %r2.b3210, %r3, %r4;", "vset.u32.u32.lt %r1, %r2, %r3;", "vshl.u32.u32.u32.wrap %r1, %r2, %r3;",
	"vmad.s32.s32.u32.sat.shr7 %r1, -%r2.h1, %r3.b0, %r4;", "alloca.u32 %r1, %r2, 16;", "stacksave.u64 %d0;", "stackrestore.u64 %d0;",
	"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%f0, %f1, %f2, %f3}, %r4, 3;",
	"wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %d0, %d1, %r0, 1, %p0, 1, -1;",
	"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [sh], 1, %r1;", "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d0], [sh], 128;",
	"cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [sh], [%d0, {%r1, %r2, %r3, %r4}], [sh], {%h0, %h1}, %h2;",
	"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, {%f0, %f1}];", "tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, {%f0, %f1}];", "txq.width.b32 %r1, [%d0];", "istypep.texref %p0, %d0;",
	"suld.b.2d.v2.b32.trap {%r1, %r2}, [%d0, {%r3, %r4}];", "sust.b.1d.b32.clamp [%d0, {%r1}], %r2;", "sured.b.add.2d.u32.trap [%d0, {%r1, %r2}], %r3;", "createpolicy.fractional.L2::evict_first.b64 %d0;",
}

// variants returns invalid forms of an instruction: without a qualifier, with another,
// without an operand, with one more, and with each operand replaced.
func variants(inst string) (list []string) {
	opcode, rest, _ := strings.Cut(strings.TrimSuffix(inst, ";"), " ")
	words, args := strings.Split(opcode, "."), splitOperands(rest)
	add := func(words, args []string) {
		list = append(list, strings.TrimSpace(strings.Join(words, ".")+" "+strings.Join(args, ", "))+";")
	}
	for i := 1; i < len(words); i++ {
		add(slices.Delete(slices.Clone(words), i, i+1), args)
		for _, other := range []string{"frob", "pred", "b8", "f64", "b128", "v4", "sync", "shared", "param"} {
			w := slices.Clone(words)
			w[i] = other
			add(w, args)
		}
	}
	add([]string{words[0]}, args)
	add(append(slices.Clone(words), "sat"), args)
	for n := range args {
		add(words, args[:n])
		for _, other := range []string{"%p0", "%r1", "%h1", "%d1", "%f1", "1", "0f00000000", "{%r1, %r2, %r3}", "[%r1]", "[n]", "g", "L", "_", "%clock64", "f", "!%p1", "%nosuch"} {
			a := slices.Clone(args)
			a[n] = other
			add(words, a)
		}
	}
	add(words, append(slices.Clone(args), "%r1"))
	return list
}

// splitOperands splits operands at the commas that are not in brackets.
func splitOperands(s string) (list []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				list, from = append(list, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	if strings.TrimSpace(s[from:]) == "" {
		return list
	}
	return append(list, strings.TrimSpace(s[from:]))
}

// TestRefusalsNameTheirRule checks that any error names the instruction and its line,
// and either the rule and what was found, or the form that is not implemented.
func TestRefusalsNameTheirRule(t *testing.T) {
	for _, inst := range accepted {
		if e := refusedBy(inst); e != nil {
			t.Errorf("%s is refused (%v), want it accepted", inst, e)
		}
		for _, v := range variants(inst) {
			e := refusedBy(v)
			if e == nil || e.Text == "" { // accepted, or an error of the parser
				continue
			}
			rule, found, ok := strings.Cut(e.Msg, ", found ")
			if missing := strings.HasPrefix(e.Msg, "not implemented: "); !missing && (!ok || rule == "" || found == "") && !strings.HasPrefix(e.Msg, "unknown name ") {
				t.Errorf("error of %s = %q, want a rule and what was found, or what is not implemented", v, e.Msg)
			}
			if e.Line != 8 {
				t.Errorf("line of the error of %s = %d, want 8", v, e.Line)
			}
		}
	}
}

// TestErrorsOfInstructionsHaveARule checks that all errors of instructions are made by
// rule.go, whose functions require a rule or a form.
func TestErrorsOfInstructionsHaveARule(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if name == "rule.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Errorf" {
				return true
			}
			if x, ok := s.X.(*ast.Ident); !ok || x.Name != "fmt" {
				t.Errorf("%s calls Errorf of an instruction, want a function of rule.go", name)
			}
			return true
		})
	}
}
