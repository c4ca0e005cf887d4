import AppStore
import TestSupport
import Testing

struct TokenBucketTests {
  @Test func requestsAreGrantedAtAnEvenPace() {
    var bucket = TokenBucket(rate: 4)
    #expect(bucket.take(now: .seconds(100)) == .zero)
    #expect(bucket.take(now: .seconds(100)) == .milliseconds(250))
    #expect(bucket.take(now: .seconds(100) + .milliseconds(100)) == .milliseconds(150))
    #expect(bucket.take(now: .seconds(100) + .milliseconds(250)) == .zero)
    #expect(bucket.take(now: .seconds(100) + .milliseconds(250)) == .milliseconds(250))
  }

  @Test func burstsHaveAtMostATenthOfASecondsWorth() {
    var bucket = TokenBucket(rate: 50)
    let granted = (0..<50).count { _ in bucket.take(now: .seconds(7)) == .zero }
    #expect(granted == 5)
  }

  @Test func pausesDoNotEnlargeABurst() {
    var bucket = TokenBucket(rate: 50)
    _ = bucket.take(now: .zero)
    let granted = (0..<50).count { _ in bucket.take(now: .seconds(3_600)) == .zero }
    #expect(granted == 5)
  }

  @Test func lateWakeUpsAreCompensated() {
    var bucket = TokenBucket(rate: 50)
    for _ in 0..<5 { _ = bucket.take(now: .zero) }
    // Two intervals late: two are granted at once, and a third is not.
    #expect(bucket.take(now: .milliseconds(40)) == .zero)
    #expect(bucket.take(now: .milliseconds(40)) == .zero)
    #expect(bucket.take(now: .milliseconds(40)) == .milliseconds(20))
  }

  @Test(arguments: [1, 2.5, 5, 10, 25, 50, 99, 250])
  func noSecondHasMoreThanTheRate(rate: Double) {
    for seed in UInt64(1)...20 {
      var random = SeededGenerator(seed: seed)
      var bucket = TokenBucket(rate: rate)
      var now = Duration.zero
      var grants: [Duration] = []
      while grants.count < Int(rate) * 5 + 20 {
        if bucket.take(now: now) == .zero { grants.append(now) }
        let longest: [Int64] = [0, 0, 0, 1, 10_000, 1_000_000, 40_000_000, 1_500_000_000]
        now += .nanoseconds(Int64.random(in: 0...(longest.randomElement(using: &random) ?? 0), using: &random))
      }
      #expect(mostInOneSecond(grants) <= Int(rate.rounded(.up)), "rate \(rate), seed \(seed)")
    }
  }

  @Test(arguments: [0.5, 2.5, 25, 50, 1_000])
  func manyCallersGetTheFullRate(rate: Double) {
    var bucket = TokenBucket(rate: rate)
    var now = Duration.zero
    var granted = 0
    while now < .seconds(60) {
      let wait = bucket.take(now: now)
      if wait == .zero { granted += 1 } else { now += wait }
    }
    #expect(Double(granted) >= (rate * 60).rounded(.down))
    #expect(Double(granted) <= rate * 60 + rate / 10 + 1)
  }

  @Test(arguments: [nil, 0, -3, .infinity, 1e9] as [Double?])
  func withoutARateNothingWaits(rate: Double?) {
    var bucket = TokenBucket(rate: rate)
    for _ in 0..<1_000 { #expect(bucket.take(now: .seconds(3)) == .zero) }
  }

  @Test(arguments: [nil, 10] as [Double?])
  func aLaterShorterPauseDoesNotShortenAPause(rate: Double?) {
    var bucket = TokenBucket(rate: rate)
    bucket.shut(until: .seconds(30))
    bucket.shut(until: .seconds(20))
    #expect(bucket.take(now: .seconds(10)) == .seconds(20))
    #expect(bucket.take(now: .seconds(29)) == .seconds(1))
    #expect(bucket.take(now: .seconds(30)) == .zero)
  }

  @Test func extremeRatesDoNotTrap() {
    var bucket = TokenBucket(rate: .leastNonzeroMagnitude)
    #expect(bucket.take(now: .zero) == .zero)
    #expect(bucket.take(now: .seconds(1_000_000)) > .zero)
    bucket = TokenBucket(rate: .nan)
    #expect(bucket.take(now: .zero) == .zero)
  }
}

/// The maximum number of ascending times within one second, its end excluded.
func mostInOneSecond(_ times: [Duration]) -> Int {
  var most = 0
  var first = 0
  for (index, time) in times.enumerated() {
    while times[first] <= time - .seconds(1) { first += 1 }
    most = max(most, index - first + 1)
  }
  return most
}
