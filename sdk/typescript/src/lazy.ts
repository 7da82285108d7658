/** A promise whose work begins when somebody asks for it. */

/**
 * Begins when it is awaited, and only once. What iterates instead of waiting is left to the subclasses.
 */
export abstract class Lazy<T> implements Promise<T> {
  readonly [Symbol.toStringTag]: string = "Promise";
  #begun: Promise<T> | undefined;

  /** Does the work. */
  protected abstract begin(): Promise<T>;

  /** What comes of the work, begun now if it was not. */
  protected whole(): Promise<T> {
    return (this.#begun ??= this.begin());
  }

  then<Value = T, Failure = never>(
    onValue?: ((value: T) => Value | PromiseLike<Value>) | null,
    onFailure?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return this.whole().then(onValue, onFailure);
  }

  catch<Failure = never>(
    onFailure?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<T | Failure> {
    return this.whole().catch(onFailure);
  }

  finally(onEnd?: (() => void) | null): Promise<T> {
    return this.whole().finally(onEnd);
  }
}
