/* The device's PCI address, which is the same as in the driver API. */
#include <stdio.h>
#include <string.h>

#include "state.h"

static void fill(nvmlPciInfo_t *pci)
{
	memset(pci, 0, sizeof *pci);
	pci->domain = (unsigned int)nvml_attribute(50) & 0xffff;
	pci->bus = (unsigned int)nvml_attribute(33) & 0xff;
	pci->device = (unsigned int)nvml_attribute(34) & 0xff;
	pci->pciDeviceId = (unsigned int)nvml_attribute(139);
	pci->pciSubSystemId = (unsigned int)nvml_attribute(140);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
}

/* Returns as many bytes as the program's struct has, which may be of an old version. */
static nvmlReturn_t answer(nvmlDevice_t device, void *out, size_t size)
{
	nvmlPciInfo_t all;

	DEVICE(device, out);
	fill(&all);
	memcpy(out, &all, size);
	return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return answer(device, pci, sizeof *pci);
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return answer(device, pci, offsetof(nvmlPciInfo_t, busId));
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return answer(device, pci, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
	nvmlPciInfo_t all;

	VERSIONED(device, pci, VERSION_nvmlPciInfoExt_v1);
	fill(&all);
	pci->domain = all.domain;
	pci->bus = all.bus;
	pci->device = all.device;
	pci->pciDeviceId = all.pciDeviceId;
	pci->pciSubSystemId = all.pciSubSystemId;
	pci->baseClass = 3; /* display controller */
	pci->subClass = 2;  /* 3D controller, without a display */
	memcpy(pci->busId, all.busId, sizeof pci->busId);
	return NVML_SUCCESS;
}

/* Parses a hexadecimal number up to one of the characters in ends, and skips that. If ends is "",
 * the number must end with the text. */
static int number(const char **text, const char *ends, unsigned int *out)
{
	const char *s = *text;
	unsigned int n = 0, digits = 0;

	for (;; s++, digits++) {
		int c = *s | 0x20;

		if (c >= '0' && c <= '9' && digits < 8)
			n = n * 16 + (unsigned int)(c - '0');
		else if (c >= 'a' && c <= 'f' && digits < 8)
			n = n * 16 + (unsigned int)(c - 'a' + 10);
		else
			break;
	}
	if (digits == 0 || (*ends ? !*s || !strchr(ends, *s) : *s))
		return -1;
	*text = *ends ? s + 1 : s;
	*out = n;
	return 0;
}

/* Parses DOMAIN:BUS:DEVICE.FUNCTION; domain and function are optional. */
static int parse(const char *s, nvmlPciInfo_t *pci)
{
	const char *colon = strchr(s, ':');
	unsigned int function = 0;

	pci->domain = 0;
	if (colon && strchr(colon + 1, ':') && number(&s, ":", &pci->domain) != 0)
		return -1;
	if (number(&s, ":", &pci->bus) != 0)
		return -1;
	if (!strchr(s, '.'))
		return number(&s, "", &pci->device);
	return number(&s, ".", &pci->device) != 0 || number(&s, "", &function) != 0 || function ? -1 : 0;
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
	nvmlPciInfo_t ours, asked;

	TRY(nvml_ready());
	if (!pciBusId || !device || strnlen(pciBusId, sizeof ours.busId) == sizeof ours.busId || parse(pciBusId, &asked) != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	fill(&ours);
	if (ours.domain != asked.domain || ours.bus != asked.bus || ours.device != asked.device)
		return NVML_ERROR_NOT_FOUND;
	*device = nvml_the_device();
	return NVML_SUCCESS;
}
