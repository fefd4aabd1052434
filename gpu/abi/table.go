package abi

// Kind is the type of a field on the wire.
type Kind int

// Field kinds. U64 fields are 8-aligned, U32 fields 4-aligned; a command's
// fields are ordered so that no padding arises, and its size is a multiple
// of 8.
const (
	U32 Kind = iota
	I32
	U64
	F32
	U8
)

// Field is a field of a command's fixed arguments.
type Field struct {
	Name string // C name, snake case
	Kind Kind
	Doc  string
	// Count is the length of an array of the kind; 0: a single value.
	Count int
}

// Record returns the fields of a piece of a shared region for a returned record:
// offset and length, and the region's number without a word after it.
func Record(doc string) []Field { return buf("out", doc)[:3] }

// Command is one operation that a guest may put into the ring.
type Command struct {
	Op   uint16
	Name string // Go name; the C name is its snake case
	Args []Field
	// Inline describes the variable data after the arguments; empty: none is allowed.
	Inline string
	// Sync means that the guest waits in a completion slot. Other commands may
	// have a slot too.
	Sync bool
	// Value0 and Value1 describe the slot's values when the command is done.
	Value0, Value1 string
	Doc            string
	// API names the functions of the CUDA driver API that issue the command.
	API []string
}

// buf returns the fields of a piece of a shared region. Its last word is zero.
func buf(prefix, doc string) []Field { return bufAnd(prefix, doc, prefix+"_zero", "zero") }

// bufAnd is like buf, with a meaning for the last word.
func bufAnd(prefix, doc, last, lastDoc string) []Field {
	return []Field{
		{Name: prefix + "_off", Kind: U64, Doc: doc + ": offset in its region"},
		{Name: prefix + "_len", Kind: U64, Doc: doc + ": bytes"},
		{Name: prefix + "_region", Kind: U32, Doc: doc + ": region number"},
		{Name: last, Kind: U32, Doc: lastDoc},
	}
}

// device is the description of a device number, which selects one of the VM's
// vGPUs. So far there is only number 0; others are CUDA_ERROR_INVALID_DEVICE.
const device = "device number"

func fields(parts ...[]Field) (all []Field) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func u64(name, doc string) []Field { return []Field{{Name: name, Kind: U64, Doc: doc}} }

func u32s(pairs ...string) (all []Field) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, Field{Name: pairs[i], Kind: U32, Doc: pairs[i+1]})
	}
	return all
}

// textured has the fields of the description of a texture or a surface.
var textured = fields(u64("base", "array, or device address"),
	u64("width", "device memory: texels"), u64("height", "device memory: rows, or 0"), u64("pitch", "device memory: bytes from row to row"),
	u64("view_width", "texels"), u64("view_height", "texels, or 0"), u64("view_depth", "texels or layers, or 0"),
	u32s("resource", "CUresourcetype", "level", "of an array that is a level", "format", "CUarray_format, of device memory", "channels", "of device memory",
		"surface", "1: for surface instructions, and what follows is 0", "flags", "CU_TRSF_…"),
	[]Field{{Name: "address", Kind: U32, Doc: "CUaddress_mode", Count: 3}},
	u32s("filter", "CUfilter_mode", "mip_filter", "CUfilter_mode", "anisotropy", "maxAnisotropy"),
	[]Field{{Name: "bias", Kind: F32, Doc: "of the level"}, {Name: "min_level", Kind: F32, Doc: "the least"}, {Name: "max_level", Kind: F32, Doc: "the most"},
		{Name: "border", Kind: F32, Doc: "colour", Count: 4}},
	u32s("view", "CUresourceViewFormat; 0: there is no view", "first_level", "of the view", "last_level", "of the view", "first_layer", "of the view", "last_layer", "of the view"))

// Commands is the table of special commands; those that only pass on a function are rows of
// gpu/cudaapi/functions.txt. Numbers are never reused. Handles (ctx, module, function, stream,
// event) are chosen by the guest, never zero, and unique within the guest process across all kinds.
// A context's handle is also the handle of its legacy default stream. A command that fails and has
// no slot leaves its error to the context's next command with one.
var Commands = []Command{
	{Op: 0, Name: "Nop", Doc: "Fills the end of the ring; its inline bytes are skipped.", Inline: "padding"},

	// Device and vGPU.
	{Op: 1, Name: "DeviceInfo", Sync: true, Args: bufAnd("out", "DeviceInfo record", "device", device),
		Doc: "Fills a DeviceInfoReply (reply.go).", Value0: "bytes written",
		API: []string{"cuInit", "cuDeviceGetAttribute", "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetUuid"}},
	{Op: 2, Name: "VGPUStatus", Sync: true, Args: bufAnd("out", "VGPUStatus record", "device", device),
		Doc: "Fills a VGPUStatusReply (reply.go): memory, utilization, processes of the whole vGPU.", Value0: "bytes written",
		API: []string{"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeRunningProcesses"}},

	{Op: 121, Name: "Multiprocessors", Sync: true, Args: u32s("device", device, "zero", "zero"),
		Doc:    "Returns the number of multiprocessors that green contexts can partition (1.9). CUDA_ERROR_NOT_SUPPORTED: the device has no green contexts.",
		Value0: "how many", API: []string{"cuDeviceGetDevResource", "cuCtxGetDevResource"}},

	// Contexts.
	{Op: 8, Name: "CtxCreate", Sync: true, Args: fields(u64("ctx", "new handle"), u32s("flags", "CUctx_flags", "device", device)),
		API: []string{"cuCtxCreate_v2", "cuDevicePrimaryCtxRetain"}},
	{Op: 9, Name: "CtxDestroy", Sync: true, Args: u64("ctx", "handle"),
		Doc: "Waits for the context's work and frees all its objects.",
		API: []string{"cuCtxDestroy_v2", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset"}},
	{Op: 10, Name: "CtxSynchronize", Sync: true, Args: u64("ctx", "handle"), API: []string{"cuCtxSynchronize"}},
	{Op: 11, Name: "CtxReadOutput", Sync: true, Args: fields(u64("ctx", "handle"), buf("out", "text")),
		Doc:    "Reads the oldest output of the context's kernels, as much as fits and has the same destination. It completes at once, in a failed context too. OffOutputCount shows when there may be output.",
		Value0: "bytes written; 0: there is nothing", Value1: "Output…: where they go",
		API: []string{"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuLaunchKernel", "cuMemcpyDtoH_v2", "cuCtxDestroy_v2"}},
	{Op: 12, Name: "CtxSetLimit", Sync: true, Args: fields(u64("ctx", "handle"), u64("value", "as cuCtxSetLimit"), u32s("limit", "CUlimit", "zero", "zero")),
		Doc:    "Sets LimitPrintfFIFO, the bytes of its kernels' output that the context keeps; CUDA_ERROR_INVALID_VALUE once there was output. Other limits are CUDA_ERROR_UNSUPPORTED_LIMIT.",
		Value0: "the value in force", API: []string{"cuCtxSetLimit"}},

	// Modules.
	{Op: 16, Name: "ModuleLoad", Sync: true,
		Args: fields(u64("ctx", "handle"), u64("module", "new handle"), u64("first_function", "handle of the image's first function; the following ones count up"),
			buf("image", "PTX text (with or without NUL), cubin or fatbin"), buf("out", "ModuleInfo record"),
			u32s("opt_level", "0-4, and LoadLazy (1.6)", "max_registers", "0 = any")),
		Doc:    "Loads an image and fills a ModuleInfo record (reply.go) with functions, globals and logs, even when it fails.",
		Value0: "bytes written, or needed when the result is CUDA_ERROR_INVALID_VALUE",
		API:    []string{"cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoad", "cuModuleLoadFatBinary", "cuModuleGetFunction", "cuModuleGetGlobal_v2"}},
	{Op: 21, Name: "ModuleLoadManaged", Sync: true,
		Args: fields(u64("ctx", "handle"), u64("module", "new handle"), u64("first_function", "as of ModuleLoad"),
			buf("image", "as of ModuleLoad"), buf("out", "ModuleInfo record"),
			u32s("opt_level", "0-4, and LoadLazy (1.6)", "max_registers", "0 = any"), u64("managed", "address, in a region that MemHostMap has mapped"), u64("managed_len", "bytes from there"),
			u32s("fresh", "1 = the variables get their first values, 0 = they have been used already", "zero", "zero")),
		Doc:    "ModuleLoad for an image with managed variables. For such an image ModuleLoad fails with CUDA_ERROR_NOT_SUPPORTED and, if the device supports them, lists them as globals with address 0; here they are stored in host memory of the guest, in that order, each at the next multiple of ManagedAlign.",
		Value0: "as of ModuleLoad",
		API:    []string{"cuModuleLoadData", "cuLibraryGetManaged"}},
	{Op: 17, Name: "ModuleUnload", Sync: true, Args: u64("module", "handle"), API: []string{"cuModuleUnload"}},
	{Op: 18, Name: "FuncSetAttribute", Sync: true, Args: fields(u64("function", "handle"), []Field{{Name: "attribute", Kind: I32, Doc: "CUfunction_attribute"}, {Name: "value", Kind: I32, Doc: "value"}}),
		API: []string{"cuFuncSetAttribute", "cuFuncSetCacheConfig"}},
	{Op: 22, Name: "FuncLoad", Sync: true, Args: fields(u64("function", "handle"), buf("out", "ModuleInfo record")),
		Doc:    "Compiles a function that was loaded with LoadLazy, unless it is compiled already, and fills a ModuleInfo record with only this function (1.6).",
		Value0: "bytes written, or needed when the result is CUDA_ERROR_INVALID_VALUE",
		API:    []string{"cuFuncGetAttribute", "cuFuncLoad", "cuLaunchKernel", "cuOccupancyMaxActiveBlocksPerMultiprocessor"}},
	{Op: 111, Name: "Clusters", Sync: true,
		Args: fields(u64("function", "handle"), u32s("grid_x", "as of Launch", "grid_y", "", "grid_z", "", "block_x", "", "block_y", "", "block_z", "",
			"shared", "dynamic shared memory, bytes", "flags", "as of Launch", "potential", "0 = clusters at a time, 1 = blocks of the largest one", "zero", "zero")),
		Doc:    "Returns how many clusters of a launch can be on the device at a time, or how large one can be. A worker that does not know the command, or whose device has no clusters, answers CUDA_ERROR_NOT_SUPPORTED.",
		Value0: "int: how many",
		API:    []string{"cuOccupancyMaxActiveClusters", "cuOccupancyMaxPotentialClusterSize"}},
	{Op: 20, Name: "ImageInfo", Sync: true, Args: fields(buf("image", "as of ModuleLoad"), buf("out", "ModuleInfo record")),
		Doc:    "Lists the kernels of an image, with their parameters, without loading it: it needs no context. Fills a ModuleInfo record with functions whose attributes are 0. A worker that does not know the command answers CUDA_ERROR_NOT_SUPPORTED.",
		Value0: "bytes written, or needed when the result is CUDA_ERROR_INVALID_VALUE",
		API:    []string{"cuLibraryGetKernel", "cuLibraryGetKernelCount", "cuLibraryEnumerateKernels", "cuKernelGetParamInfo"}},

	// Arrays, textures and surfaces. A worker that does not know these commands, or
	// whose device has none, answers CUDA_ERROR_NOT_SUPPORTED.
	{Op: 24, Name: "ArrayCreate", Sync: true,
		Args: fields(u64("ctx", "handle"), u64("array", "new handle"), u64("width", "texels"), u64("height", "texels, or 0"), u64("depth", "texels, layers or faces, or 0"),
			u32s("format", "CUarray_format", "channels", "1, 2 or 4", "flags", "CUDA_ARRAY3D_…", "levels", "sizes, each half of the one before; at least 1")),
		Doc: "Creates a zeroed array.", API: []string{"cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate"}},
	{Op: 25, Name: "ArrayDestroy", Sync: true, Args: u64("array", "handle"), Doc: "Frees the array when the context's work so far is done.",
		API: []string{"cuArrayDestroy", "cuMipmappedArrayDestroy"}},
	{Op: 26, Name: "ArrayCopy",
		Args: fields(u64("stream", "handle"), u64("dst", "array, or device address"), u64("src", "array, or device address"),
			[]Field{{Name: "dst_at", Kind: U64, Doc: "in an array: byte of a row, row, depth or layer", Count: 3}, {Name: "src_at", Kind: U64, Doc: "likewise", Count: 3},
				{Name: "size", Kind: U64, Doc: "bytes of a row, rows, depths or layers", Count: 3}},
			u64("pitch", "device memory: bytes from row to row"), u64("rows", "device memory: rows from depth to depth"),
			u32s("dst_level", "of an array", "src_level", "of an array", "arrays", "ArrayCopyDst and ArrayCopySrc: which are arrays", "zero", "zero")),
		Doc: "Copies a box between two arrays, or an array and device memory.",
		API: []string{"cuMemcpy2D_v2", "cuMemcpy3D_v2", "cuMemcpyAtoA_v2", "cuMemcpyHtoA_v2", "cuMemcpyAtoH_v2", "cuMemcpyDtoA_v2", "cuMemcpyAtoD_v2"}},
	{Op: 27, Name: "TextureCreate", Sync: true, Args: fields(u64("ctx", "handle"), u64("texture", "new handle"), textured),
		Doc: "Creates a texture or surface object.", Value0: "what kernels are given: the CUtexObject or CUsurfObject",
		API: []string{"cuTexObjectCreate", "cuSurfObjectCreate"}},
	{Op: 28, Name: "TextureDestroy", Args: u64("texture", "handle"), Doc: "Destroys the object when the context's work so far is done.", API: []string{"cuTexObjectDestroy", "cuSurfObjectDestroy"}},

	{Op: 119, Name: "ReferenceFind", Sync: true, Args: fields(u64("module", "handle"), u64("reference", "new handle"), u32s("surface", "1: a surface reference", "zero", "zero")),
		Inline: "name of the variable", Doc: "Finds a texture or surface reference of a module (1.9). It is destroyed with the module.", API: []string{"cuModuleGetTexRef", "cuModuleGetSurfRef"}},
	{Op: 120, Name: "ReferenceBind", Sync: true, Args: fields(u64("ctx", "handle"), u64("reference", "handle"), textured),
		Doc: "Binds a reference for the following launches, in any stream (1.9). Earlier launches keep the previous binding.",
		API: []string{"cuTexRefSetArray", "cuTexRefSetAddress_v2", "cuTexRefSetAddress2D_v3", "cuTexRefSetMipmappedArray", "cuSurfRefSetArray", "cuLaunchKernel"}},

	// Memory.
	{Op: 32, Name: "MemAlloc", Sync: true, Args: fields(u64("ctx", "handle"), u64("size", "bytes")), Value0: "device address",
		API: []string{"cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged"}},
	{Op: 33, Name: "MemFree", Sync: true, Args: u64("address", "device address that MemAlloc gave"), API: []string{"cuMemFree_v2"}},
	{Op: 38, Name: "MemFreeAsync", Args: fields(u64("stream", "handle"), u64("address", "device address that MemAlloc gave")),
		Doc: "Frees the memory when the stream has done the work enqueued so far. It completes at once. A worker that does not know the command answers CUDA_ERROR_NOT_SUPPORTED; use MemFree then.",
		API: []string{"cuMemFreeAsync"}},
	{Op: 34, Name: "MemInfo", Sync: true, Value0: "free bytes of the vGPU", Value1: "total bytes of the vGPU", API: []string{"cuMemGetInfo_v2"}},

	// Host memory (1.2): a region with RegionPlaced that the device's work reads
	// and writes at its address.
	{Op: 35, Name: "MemHostMap", Sync: true, Args: u32s("region", "number", "zero", "zero"),
		Doc: "Lets the work of every context, including later ones, use the region's memory. CUDA_ERROR_OUT_OF_MEMORY: the worker or the device cannot map it.",
		API: []string{"cuMemHostAlloc", "cuMemAllocHost_v2", "cuMemAllocManaged"}},
	{Op: 36, Name: "MemHostUnmap", Sync: true, Args: u32s("region", "number", "zero", "zero"),
		Doc: "Completes when no work can use the memory any more. MsgDropRegion has the same effect and does not wait.",
		API: []string{"cuMemFreeHost", "cuMemFree_v2"}},

	// Memory that is mapped at addresses that the guest chooses (1.7). A worker that
	// does not know these commands, or whose device cannot, answers
	// CUDA_ERROR_NOT_SUPPORTED. Sizes and addresses are multiples of MapGranule.
	{Op: 84, Name: "MemReserve", Sync: true, Args: fields(u64("size", "bytes"), u64("align", "a power of two, or 0"), u64("wish", "address, where it is free; 0: none")),
		Doc: "Reserves addresses of the window's device part, for all contexts.", Value0: "address", API: []string{"cuMemAddressReserve"}},
	{Op: 85, Name: "MemUnreserve", Sync: true, Args: fields(u64("address", "that MemReserve gave"), u64("size", "bytes, as reserved")),
		Doc: "Releases the addresses; nothing may be mapped there.", API: []string{"cuMemAddressFree"}},
	{Op: 86, Name: "MemCreate", Sync: true, Args: fields(u64("ctx", "handle"), u64("memory", "new handle"), u64("size", "bytes")),
		Doc: "Creates zeroed memory of a context, which is not mapped.", API: []string{"cuMemCreate"}},
	{Op: 87, Name: "MemDestroy", Sync: true, Args: u64("memory", "handle"), Doc: "Frees memory that is not mapped.", API: []string{"cuMemRelease", "cuMemUnmap"}},
	{Op: 88, Name: "MemMap", Sync: true, Args: fields(u64("memory", "handle"), u64("address", "reserved, nothing is mapped there"), u64("size", "bytes of the memory, from its beginning")),
		Doc: "Maps the memory, without access, in its context.", API: []string{"cuMemMap"}},
	{Op: 89, Name: "MemUnmap", Sync: true, Args: fields(u64("address", "of a mapping"), u64("size", "bytes of one mapping or several side by side")),
		Doc: "Removes whole mappings, and completes when no work can use them any more.", API: []string{"cuMemUnmap"}},
	{Op: 90, Name: "MemAccess", Sync: true, Args: fields(u64("address", "of a mapping"), u64("size", "bytes of one mapping or several side by side"), u32s("access", "CUmemAccess_flags", "zero", "zero")),
		Doc: "Sets the access that the work of their contexts has to whole mappings.", API: []string{"cuMemSetAccess"}},

	// Memory that processes of one vGPU share. A worker that does not know these
	// commands, or whose device or host cannot, answers CUDA_ERROR_NOT_SUPPORTED.
	{Op: 112, Name: "MemShare", Sync: true, Args: u64("address", "device address that MemAlloc gave"),
		Doc: "Lets other processes open the allocation. It waits until running work leaves the device. CUDA_ERROR_OUT_OF_MEMORY: too much is shared.", Value0: "token, first half", Value1: "second half", API: []string{"cuIpcGetMemHandle"}},
	{Op: 113, Name: "MemOpen", Sync: true, Args: fields(u64("ctx", "handle"), u64("token0", "that MemShare gave another process, first half"), u64("token1", "second half")),
		Doc:    "Maps the memory in the context. If the context has opened it already, only a count is incremented. CUDA_ERROR_INVALID_CONTEXT: this process shares it itself.",
		Value0: "device address", Value1: "bytes", API: []string{"cuIpcOpenMemHandle_v2"}},
	{Op: 114, Name: "MemClose", Sync: true, Args: u64("address", "device address that MemOpen gave"),
		Doc: "Reverts one MemOpen; after the last one the memory is unmapped, when no work can use it any more.", Value0: "how many are left", API: []string{"cuIpcCloseMemHandle"}},

	{Op: 117, Name: "MemExport", Sync: true, Args: u64("memory", "handle, of MemCreate"),
		Doc: "Like MemShare, for mapped memory.", Value0: "token, first half", Value1: "second half", API: []string{"cuMemExportToShareableHandle"}},
	{Op: 118, Name: "MemImport", Sync: true, Args: fields(u64("ctx", "handle"), u64("memory", "new handle"), u64("token0", "that MemExport gave another process, first half"), u64("token1", "second half")),
		Doc: "Creates a handle for another process's memory, which is mapped and destroyed like memory of MemCreate.", Value0: "bytes", API: []string{"cuMemImportFromShareableHandle"}},

	// Copies, in the order of their stream. A slot, if there is one, completes
	// when the copy is done.
	{Op: 40, Name: "CopyHtoD", Args: fields(u64("stream", "handle"), u64("dst", "device address"), buf("src", "host bytes")),
		API: []string{"cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"}},
	{Op: 41, Name: "CopyHtoDInline", Args: fields(u64("stream", "handle"), u64("dst", "device address")), Inline: "host bytes",
		API: []string{"cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"}},
	{Op: 42, Name: "CopyDtoH", Args: fields(u64("stream", "handle"), u64("src", "device address"), buf("dst", "host bytes")),
		API: []string{"cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2"}},
	{Op: 43, Name: "CopyDtoD", Args: fields(u64("stream", "handle"), u64("dst", "device address"), u64("src", "device address"), u64("size", "bytes")),
		API: []string{"cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2"}},
	{Op: 44, Name: "Memset", Args: fields(u64("stream", "handle"), u64("dst", "device address"), u64("count", "elements"), u32s("value", "element", "width", "bytes an element: 1, 2 or 4")),
		API: []string{"cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"}},

	// Execution.
	{Op: 48, Name: "Launch", Args: fields(u64("stream", "handle"), u64("function", "handle"),
		u32s("grid_x", "blocks", "grid_y", "blocks", "grid_z", "blocks", "block_x", "threads", "block_y", "threads", "block_z", "threads",
			"shared", "dynamic shared memory, bytes", "flags", "1 = cooperative, from bit 8 on the cluster")),
		Inline: "kernel parameters, laid out as the kernel's parameter space",
		API:    []string{"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"}},

	// Streams.
	{Op: 56, Name: "StreamCreate", Args: fields(u64("ctx", "handle"), u64("stream", "new handle"), []Field{{Name: "flags", Kind: U32, Doc: "CUstream_flags"}, {Name: "priority", Kind: I32, Doc: "as CUDA"}}),
		API: []string{"cuStreamCreate", "cuStreamCreateWithPriority"}},
	{Op: 57, Name: "StreamDestroy", Args: u64("stream", "handle"), Doc: "Its work still completes.", API: []string{"cuStreamDestroy_v2"}},
	{Op: 58, Name: "StreamSynchronize", Sync: true, Args: u64("stream", "handle"), API: []string{"cuStreamSynchronize"}},
	{Op: 59, Name: "StreamQuery", Sync: true, Args: u64("stream", "handle"), Doc: "Completes at once: success or CUDA_ERROR_NOT_READY.", API: []string{"cuStreamQuery"}},
	{Op: 60, Name: "StreamWaitEvent", Args: fields(u64("stream", "handle"), u64("event", "handle")), API: []string{"cuStreamWaitEvent"}},
	{Op: 61, Name: "StreamMark", Sync: true, Args: u64("stream", "handle"),
		Doc: "Completes when the work put into the stream so far is done, like StreamSynchronize, but does not consume an error that another command has left: the guest library uses it to count the unfinished commands of a stream (docs/decisions/0035). A worker that does not know the command completes it at once, and the stream then has no limit of its own."},

	{Op: 62, Name: "StreamWaitValue", Args: fields(u64("stream", "handle"), u64("address", "device address"), u64("value", "to compare with"),
		u32s("width", "bytes of the value: 4 or 8", "flags", "CUstreamWaitValue_flags")),
		Doc: "The stream waits until the value at the address compares with the given one as the flags require (1.4). CUDA_ERROR_NOT_SUPPORTED: the device does not support such waits, as its attributes report.",
		API: []string{"cuStreamWaitValue32_v2", "cuStreamWaitValue64_v2", "cuStreamBatchMemOp_v2"}},

	// Events.
	{Op: 64, Name: "EventCreate", Args: fields(u64("ctx", "handle"), u64("event", "new handle"), u32s("flags", "CUevent_flags", "zero", "zero")), API: []string{"cuEventCreate"}},
	{Op: 65, Name: "EventDestroy", Args: u64("event", "handle"), API: []string{"cuEventDestroy_v2"}},
	{Op: 66, Name: "EventRecord", Args: fields(u64("event", "handle"), u64("stream", "handle")), API: []string{"cuEventRecord"}},
	{Op: 67, Name: "EventSynchronize", Sync: true, Args: u64("event", "handle"), API: []string{"cuEventSynchronize"}},
	{Op: 68, Name: "EventQuery", Sync: true, Args: u64("event", "handle"), Doc: "Completes at once: success or CUDA_ERROR_NOT_READY.", API: []string{"cuEventQuery"}},
	{Op: 115, Name: "EventShare", Sync: true, Args: u64("event", "handle"),
		Doc: "Lets other processes of the vGPU open the event (1.8). From then on a record is counted when its command is executed, and EventQuery and EventSynchronize refer to the latest record of any process.", Value0: "token, first half", Value1: "second half", API: []string{"cuIpcGetEventHandle"}},
	{Op: 116, Name: "EventOpen", Sync: true, Args: fields(u64("ctx", "handle"), u64("event", "new handle"), u64("token0", "that EventShare gave another process, first half"), u64("token1", "second half")),
		Doc: "Creates a handle for another process's event. StreamWaitEvent refers to this process's own records.", API: []string{"cuIpcOpenEventHandle"}},

	// Graphs: recorded by the guest, sent as one list of nodes (graph_codec.go).
	{Op: 80, Name: "GraphInstantiate", Sync: true, Args: fields(u64("ctx", "handle"), u64("exec", "new handle"), buf("nodes", "graph record")),
		Doc: "Creates an executable graph of the nodes.",
		API: []string{"cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams"}},
	{Op: 81, Name: "GraphUpdate", Sync: true, Args: fields(u64("exec", "handle"), buf("nodes", "graph update record")),
		Doc: "Changes the parameters of nodes for later launches; kinds and dependencies stay the same. Either all changes are made or none.",
		API: []string{"cuGraphExecUpdate_v2", "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemcpyNodeSetParams", "cuGraphExecMemsetNodeSetParams", "cuGraphNodeSetEnabled"}},
	{Op: 82, Name: "GraphLaunch", Args: fields(u64("stream", "handle"), u64("exec", "handle")),
		Doc: "Runs the graph after the earlier work of the stream and before the later. Runs of one executable graph are serialized.",
		API: []string{"cuGraphLaunch"}},
	{Op: 83, Name: "GraphDestroy", Args: u64("exec", "handle"), Doc: "Its launches still complete.", API: []string{"cuGraphExecDestroy"}},
}
