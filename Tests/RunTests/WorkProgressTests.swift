import Reconciliation
import Testing

@testable import Run

@Suite struct WorkProgressTests {
  @Test("after ten seconds without an answer, a wait for Apple is shown until the next answer") func waiting() {
    let began = ContinuousClock.now
    var state = ProgressState(label: "asking Apple", total: 1_380, done: 200, began: began)
    state.lastStep = (began + .seconds(10), Instant(seconds: 1_795_143_725))
    #expect(state.line(began + .seconds(10)) == "asking Apple: 200 of 1380, 20/s, 59 s left")
    #expect(!state.isWaiting(began + .seconds(19)))
    #expect(state.isWaiting(began + .seconds(20)))
    #expect(state.line(began + .seconds(20)) == "asking Apple: 200 of 1380, waiting for Apple since 03:02 UTC")
    state.lastStep.0 = began + .seconds(20)
    #expect(state.line(began + .seconds(20)) == "asking Apple: 200 of 1380, 10/s, 118 s left")
  }

  @Test("work of unknown length shows the number of its steps") func unknownLength() {
    let began = ContinuousClock.now
    var state = ProgressState(label: "sweeping", total: 0, done: 7, began: began)
    state.lastStep = (began, Instant(seconds: 1_795_143_725))
    #expect(state.line(began) == "sweeping: 7")
    #expect(state.line(began + .seconds(60)) == "sweeping: 7, waiting for Apple since 03:02 UTC")
  }
}
