package ptx

// Module is one translation unit.
type Module struct {
	Major, Minor int    // .version
	Arch         int    // from .target: 70 for sm_70; 0 when it has none
	AddressSize  int    // 32 or 64
	Vars         []*Var // module variables, in order
	Funcs        []*Func
}

// Var is a variable, a parameter or, in Func.Params, a register parameter.
type Var struct {
	Name   string
	Space  Space
	Type   Type
	Align  uint32 // bytes, a power of two
	Size   uint64 // bytes; 0 for an unsized extern array
	Extern bool
	// Managed means that the device and the program use the same memory.
	Managed bool
	Init    []byte  // shorter than Size: the rest is zero
	Relocs  []Reloc // addresses in Init
	Offset  uint32  // in the parameter space, for parameters of entries
	Reg     int     // register number when Space is Register
	Link    Linkage
	Object  string // in a linked module: the object that defines it
	Line    int
}

// Linkage is the visibility of a name outside its object (PTX ISA, "Linking
// Directives"). Extern is a separate flag: it means that there is no definition.
type Linkage uint8

// The linkages. A .common variable is weak, and the largest of its name is used.
const (
	Internal Linkage = iota
	Visible
	Weak
	Common
)

// Reloc is an address in an initialiser.
type Reloc struct {
	Offset  uint64 // bytes into the variable
	Symbol  string
	Addend  int64
	Generic bool // wrapped in generic()
	Size    uint32
	Var     *Var  // what Symbol refers to: one of the two
	Func    *Func // set if the address is the function's
}

// Reg is a virtual register.
type Reg struct {
	Name string
	Type Type
}

// Func is a kernel (.entry) or a device function (.func).
type Func struct {
	Name    string
	Entry   bool
	Extern  bool // declared without a body
	Returns []*Var
	Params  []*Var
	Regs    []Reg
	Vars    []*Var // .local, .shared, .param … declared in the body
	Body    []Inst
	MaxTID  [3]uint32 // .maxntid, 0 when absent
	ReqTID  [3]uint32 // .reqntid, 0 when absent
	Cluster [3]uint32 // .reqnctapercluster, 0 when absent
	Link    Linkage
	Object  string // in a linked module: the object that defines it
	Line    int

	at    int  // where its head begins in the source
	whole bool // its body has been read, or must be read, with the module
}

// ParamBytes returns the size of the parameter space of an entry.
func (f *Func) ParamBytes() uint32 {
	if len(f.Params) == 0 {
		return 0
	}
	p := f.Params[len(f.Params)-1]
	return p.Offset + uint32(p.Size)
}

// Inst is one instruction.
type Inst struct {
	Op       string   // "add"
	Mods     []string // "rn", "f32"
	Guard    int      // predicate register, or -1
	GuardNot bool
	Args     []Operand
	Line     int
	Source   SourceLine
	Text     string // as written, shortened
}

// Errorf returns an error with the instruction and its line.
func (in *Inst) Errorf(format string, args ...any) *Error {
	return &Error{Line: in.Line, Text: in.Text, Msg: message(format, args)}
}

// Has reports whether a modifier is present.
func (in *Inst) Has(mod string) bool {
	for _, m := range in.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// Kind is the kind of an operand.
type Kind uint8

// The kinds of operand.
const (
	KindReg     Kind = iota // Reg; Not for !p; Name: the parts that a video instruction uses, "b0", "h10"
	KindInt                 // Bits, a 64-bit integer
	KindF32                 // Bits, 0fXXXXXXXX
	KindF64                 // Bits, 0dXXXX… or a decimal number
	KindVar                 // Var, plus Off: its address
	KindFunc                // Func
	KindSpecial             // Name, "%tid.x"
	KindVec                 // List, { … }
	KindMem                 // [base+Off]; base is List[0], absent for [imm]
	KindLabel               // Target: index into Func.Body
	KindPair                // List[0] | List[1]
	KindList                // List, ( … ) of a call
	KindTargets             // Targets: a .branchtargets table
	KindProto               // a .callprototype or .calltargets, Name
	KindSink                // _
)

// Operand is one operand.
type Operand struct {
	Kind    Kind
	Not     bool
	Negated bool // of vmad's registers, -a
	Reg     int
	Bits    uint64
	Off     int64
	Name    string
	Var     *Var
	Func    *Func
	List    []Operand
	Target  int
	Targets []int
}
