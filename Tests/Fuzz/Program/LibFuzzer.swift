#if LIBFUZZER
  /// Nil if the corpus cannot be read, which ends the program at the first input. The attribute nonisolated(unsafe) is
  /// sound because libFuzzer uses one thread, which the compiler cannot see; a workbook must not be shared by threads.
  nonisolated(unsafe) private let harness = try? FuzzHarness(FuzzCorpus())

  /// The entry point for each input (LLVM, "libFuzzer – a library for coverage-guided fuzz testing"). A crash reports a
  /// failure, and libFuzzer then keeps the input.
  @_cdecl("LLVMFuzzerTestOneInput")
  public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // libFuzzer offers no other way to end a run that cannot start.
    guard let harness else { fatalError("the corpus cannot be read") }
    do throws(FuzzHarness.Violation) {
      try harness.check(Array(UnsafeBufferPointer(start: start, count: count)))
    } catch {
      fatalError("\(error)")
    }
    return 0
  }
#endif
