#ifndef NIGHT_AUDIT_CEXPAT_SHIM_H
#define NIGHT_AUDIT_CEXPAT_SHIM_H

#include <expat.h>

#endif
