import Glibc

/// How hard the parts of a workbook are compressed.
///
/// libxlsxwriter 1.1.4 leaves zlib at its default, level 6, and offers no other: with a sheet for every order that is a
/// third of a workbook's processor time. Level 2 takes a third of that, and makes files a quarter larger.
private let level: CInt = 2

/// zlib.h: Z_DEFAULT_COMPRESSION.
private let defaultLevel: CInt = -1

/// As minizip's zip.h declares it: archive, name, file information, extra fields with their sizes, comment, method, level,
/// raw, window bits, memory level, strategy, password, CRC, version made by, flags, ZIP64.
private typealias OpenPart =
  @convention(c) (
    UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafeRawPointer?, UnsafeRawPointer?, CUnsignedInt,
    UnsafeRawPointer?, CUnsignedInt, UnsafePointer<CChar>?, CInt, CInt, CInt, CInt, CInt, CInt, UnsafePointer<CChar>?,
    CUnsignedLong, CUnsignedLong, CUnsignedLong, CInt
  ) -> CInt

/// minizip's own function, behind the one below.
private let openPart: OpenPart? = {
  // dlsym(3): RTLD_NEXT, which is a macro that Swift does not import.
  let next = unsafe UnsafeMutableRawPointer(bitPattern: -1)
  return unsafe dlsym(next, "zipOpenNewFileInZip4_64").map { unsafe unsafeBitCast($0, to: OpenPart.self) }
}()

/// Takes the place of minizip's function of this name when the dynamic linker binds it, as `openTemporaryFile` does with
/// the library's. Where it binds another, workbooks are only made more slowly. minizip must be a shared library.
@c(zipOpenNewFileInZip4_64)
package func openPartOfArchive(
  _ archive: UnsafeMutableRawPointer?, _ name: UnsafePointer<CChar>?, _ information: UnsafeRawPointer?,
  _ localExtra: UnsafeRawPointer?, _ localExtraSize: CUnsignedInt, _ globalExtra: UnsafeRawPointer?,
  _ globalExtraSize: CUnsignedInt, _ comment: UnsafePointer<CChar>?, _ method: CInt, _ wantedLevel: CInt,
  _ isRaw: CInt, _ windowBits: CInt, _ memoryLevel: CInt, _ strategy: CInt, _ password: UnsafePointer<CChar>?,
  _ checksum: CUnsignedLong, _ versionMadeBy: CUnsignedLong, _ flags: CUnsignedLong, _ isZip64: CInt
) -> CInt {
  // zip.h: ZIP_PARAMERROR, which the library reports as a workbook that cannot be written.
  guard let openPart = unsafe openPart else { return -102 }
  return unsafe openPart(
    archive, name, information, localExtra, localExtraSize, globalExtra, globalExtraSize, comment, method,
    wantedLevel == defaultLevel ? level : wantedLevel, isRaw, windowBits, memoryLevel, strategy, password, checksum,
    versionMadeBy, flags, isZip64)
}
