package exec

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// TestEveryOperation checks that every operation and every end of gpu/soft/ir has a
// step: a type that is added there and not here would panic in the worker.
func TestEveryOperation(t *testing.T) {
	add, _ := ops.Find("add", "u32")
	have := map[string]bool{}
	for _, op := range []ir.Op{
		&ir.Arith{F: add, S: make([]ir.Ref, 2)}, &ir.Clock{}, &ir.Pack{}, &ir.Unpack{}, &ir.Logic{}, &ir.LogicPair{}, &ir.Select{},
		&ir.Convert{}, &ir.StackAddress{}, &ir.Alloca{}, &ir.AddCarry{}, &ir.ActiveMask{}, &ir.Fail{}, &ir.Load{}, &ir.Store{}, &ir.Atomic{},
		&ir.CopyAsync{}, ir.NewExchange("vote"), &ir.CopyLocal{}, &ir.CopyWord{}, &ir.Malloc{}, &ir.Free{}, &ir.Print{},
		&ir.Assertion{}, &ir.SetCondition{}, &ir.LaunchBuffer{}, &ir.LaunchKernel{}, &ir.Nanosleep{}, &ir.MBarrier{}, &ir.CopyBulk{}, &ir.CopyTensor{}, &ir.ReplaceTensorField{},
		&ir.Fetch{}, &ir.TextureProperty{}, &ir.IsTexture{}, &ir.SurfaceLoad{}, &ir.SurfaceStore{}, &ir.SurfaceReduce{},
	} {
		if s := newStep(op); s.dense == nil && s.masked == nil {
			t.Errorf("newStep(%T) has neither dense nor masked, want one", op)
		}
		have[typeName(op)] = true
	}
	matrix := ir.MatrixAccess{Fragment: ops.WmmaFragment("a", 16, 16, 16, ops.ElementByName("f16"))}
	for _, op := range []ir.Op{
		&ir.Product{}, &ir.LoadMatrix{MatrixAccess: matrix}, &ir.StoreMatrix{}, &ir.LoadTiles{}, &ir.StoreTiles{}, &ir.TransposeTile{}, &ir.WarpgroupProduct{},
		&ir.SparseProduct{}, &ir.SparseWarpgroupProduct{},
	} {
		if newWhole(op) == nil {
			t.Errorf("newWhole(%T) = nil, want a function", op)
		}
		have[typeName(op)] = true
	}
	have[typeName(&ir.Barrier{})], have[typeName(&ir.Aligned{})] = true, true // the beginning of a block only
	have[typeName(&ir.ClusterBarrier{})] = true                               // the beginning of a block only
	for _, e := range []ir.End{
		ir.Goto{}, ir.Branch{}, ir.Table{}, ir.Exit{}, ir.Call{}, ir.Return{}, ir.CallDynamic{F: &ir.Callee{}}, ir.CallAddress{}, ir.ReturnDynamic{F: &ir.Callee{}},
	} {
		if newEnd(e) == nil {
			t.Errorf("newEnd(%T) = nil, want a function", e)
		}
		have[typeName(e)] = true
	}
	for name := range namedTypes(t) {
		if !have[name] {
			t.Errorf("ir.%s is not in this test, want every operation and end", name)
		}
	}
}

// namedTypes returns the types of gpu/soft/ir that have a method Name.
func namedTypes(t *testing.T) map[string]bool {
	files, err := filepath.Glob("../ir/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "Name" {
				continue
			}
			x := fn.Recv.List[0].Type
			if p, ok := x.(*ast.StarExpr); ok {
				x = p.X
			}
			names[x.(*ast.Ident).Name] = true
		}
	}
	if len(names) < 20 {
		t.Fatalf("found %d types with a method Name, want at least 20", len(names))
	}
	return names
}

func typeName(v any) string {
	name := fmt.Sprintf("%T", v)
	return name[strings.LastIndex(name, ".")+1:]
}
