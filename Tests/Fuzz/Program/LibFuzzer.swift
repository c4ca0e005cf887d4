#if LIBFUZZER
  /// Nil when the corpus cannot be read, which ends the program at the first input. Unsafe: a workbook is no thread's but its own,
  /// and libFuzzer has one thread, which the compiler cannot know.
  nonisolated(unsafe) private let harness = try? FuzzHarness(FuzzCorpus())

  /// What libFuzzer calls for each input (LLVM, "libFuzzer – a library for coverage-guided fuzz testing"). Ending the
  /// process is how it is told of a failure; it then keeps the input.
  @_cdecl("LLVMFuzzerTestOneInput")
  public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // libFuzzer knows no other end of a run that cannot begin.
    guard let harness else { fatalError("the corpus cannot be read") }
    do throws(FuzzHarness.Violation) {
      try harness.check(Array(UnsafeBufferPointer(start: start, count: count)))
    } catch {
      // A crash is how libFuzzer learns of a violation and keeps the input.
      fatalError("\(error)")
    }
    return 0
  }
#endif
